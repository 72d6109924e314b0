package commands

import (
	"slices"
	"strconv"
	"strings"

	"oc/commands/term"
)

// A family is one metric and its samples. All that oc tells are gauges: it keeps no count of its own from one run to the next.
type family struct {
	name, unit, help string
	samples          []sample
	at               map[string]int // index of the sample with these labels
}

type sample struct {
	labels []string // names and values in turn
	value  float64
}

// families are metrics in the order in which they are shown.
type families []*family

// gauge begins a metric. A unit must be the last word of the name.
func (all *families) gauge(name, unit, help string) *family {
	f := &family{name: name, unit: unit, help: help, at: map[string]int{}}
	*all = append(*all, f)
	return f
}

// add adds a value to the sample with these labels; labels without a value are left out. Names are made safe to show, and of names that
// look alike then the values are added up: a label set may stand once.
func (f *family) add(value float64, labels ...string) {
	var set []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			set = append(set, labels[i], term.Escape(labels[i+1]))
		}
	}
	key := strings.Join(set, "\x00")
	i, ok := f.at[key]
	if !ok {
		i = len(f.samples)
		f.samples = append(f.samples, sample{labels: set})
		f.at[key] = i
	}
	f.samples[i].value += value
}

func (all families) samples() (n int) {
	for _, f := range all {
		n += len(f.samples)
	}
	return n
}

// exposition is the text of OpenMetrics 1.0, which the older text format of Prometheus reads alike.
func (all families) exposition() []byte {
	var b []byte
	for _, f := range all {
		if len(f.samples) == 0 {
			continue
		}
		b = append(b, "# TYPE "+f.name+" gauge\n"...)
		if f.unit != "" {
			b = append(b, "# UNIT "+f.name+" "+f.unit+"\n"...)
		}
		b = append(b, "# HELP "+f.name+" "+f.help+"\n"...)
		for _, s := range f.samples {
			b = append(b, f.name...)
			for i := 0; i < len(s.labels); i += 2 {
				open := ","
				if i == 0 {
					open = "{"
				}
				b = append(b, open+s.labels[i]+`="`+labelEscapes.Replace(s.labels[i+1])+`"`...)
			}
			if len(s.labels) > 0 {
				b = append(b, '}')
			}
			b = append(b, ' ')
			b = strconv.AppendFloat(b, s.value, 'f', -1, 64)
			b = append(b, '\n')
		}
	}
	return append(b, "# EOF\n"...)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// sorted puts samples in the order of their labels, so that one state always gives one text.
func (all families) sorted() families {
	for _, f := range all {
		slices.SortStableFunc(f.samples, func(a, b sample) int { return slices.Compare(a.labels, b.labels) })
		f.at = nil
	}
	return all
}
