package commands

import (
	"fmt"
	"math"
	"strconv"

	"oc/commands/term"
)

// The pictures of a report are SVG that is drawn by hand: lengths are in units of a picture that is 760 wide, colours are classes of the
// style sheet, and each mark says in its title what it stands for.
const (
	pictureWidth = 760.0
	labelRoom    = 170.0
	noteRoom     = 150.0
	barHeight    = 18.0
	barStep      = 30.0
)

// A bar is one row of a picture: a name, parts that add up, and what is written behind it.
type bar struct {
	name, note string
	values     []float64
}

func (b *bar) sum() (n float64) {
	for _, v := range b.values {
		n += v
	}
	return n
}

// bars draws rows of parts. class begins the classes of the colours, which say goes after; says puts a value into words.
func (d *page) bars(what, class string, parts []string, all []bar, says func(float64) string) {
	most := 0.0
	for i := range all {
		most = max(most, all[i].sum())
	}
	height := barStep*float64(len(all)) + 4
	d.printf("<svg viewBox=\"0 0 %s %s\" role=\"img\" aria-label=\"%s\">\n", length(pictureWidth), length(height), what)
	room := pictureWidth - labelRoom - noteRoom
	for i := range all {
		b := &all[i]
		y := barStep*float64(i) + (barStep-barHeight)/2
		d.printf("<text class=\"name\" x=\"%s\" y=\"%s\">%s</text>\n", length(labelRoom-10), length(y+13), term.Escape(term.CutMiddle(b.name, 24, "…")))
		x := labelRoom
		for j, v := range b.values {
			if !(v > 0) || most == 0 {
				continue
			}
			w := max(v/most*room, 1)
			// A hair of the ground parts what stands side by side.
			d.printf("<rect class=\"%s%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"2\"><title>%s, %s: %s</title></rect>\n",
				class, strconv.Itoa(j), length(x), length(y), length(max(w-1.5, 1)), length(barHeight), term.Escape(b.name), parts[j], says(v))
			x += w
		}
		d.printf("<text class=\"note\" x=\"%s\" y=\"%s\">%s</text>\n", length(x+8), length(y+13), b.note)
	}
	d.printf("</svg>\n")
}

// legend names the colours of bars.
func (d *page) legend(class string, parts []string) {
	d.printf("<ul class=\"legend\">\n")
	for i, p := range parts {
		d.printf("<li><svg viewBox=\"0 0 10 10\"><rect class=\"%s%s\" width=\"10\" height=\"10\" rx=\"2\"/></svg>%s</li>\n", class, strconv.Itoa(i), p)
	}
	d.printf("</ul>\n")
}

// columns draws a value for each day. Values that are not known are NaN and leave a gap.
func (d *page) columns(what, class string, days []string, values []float64, says func(float64) string) {
	const left, top, height = 70.0, 12.0, 130.0
	most := 0.0
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	scale := roundUp(most)
	d.printf("<svg viewBox=\"0 0 %s %s\" role=\"img\" aria-label=\"%s\">\n", length(pictureWidth), length(top+height+24), what)
	for i := range 3 {
		y := top + height*float64(i)/2
		d.printf("<line class=\"grid\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n", length(left), length(y), length(pictureWidth), length(y))
		d.printf("<text class=\"name\" x=\"%s\" y=\"%s\">%s</text>\n", length(left-8), length(y+4), says(scale*float64(2-i)/2))
	}
	step := (pictureWidth - left) / float64(max(len(days), 7))
	every := max(1, int(math.Ceil(82/step)))
	for i, v := range values {
		x := left + step*float64(i)
		if v > 0 && scale > 0 {
			h := max(v/scale*height, 1)
			d.printf("<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"1.5\"><title>%s: %s</title></rect>\n",
				class, length(x+step*.1), length(top+height-h), length(max(step*.8, 1)), length(h), days[i], says(v))
		}
		if i%every == 0 && x+step*.1 <= pictureWidth-66 {
			d.printf("<text class=\"day\" x=\"%s\" y=\"%s\">%s</text>\n", length(x+step*.1), length(top+height+17), days[i])
		}
	}
	d.printf("</svg>\n")
}

// roundUp is the next number of 1, 2 or 5 and zeros.
func roundUp(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0
	}
	base := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*base >= x {
			return n * base
		}
	}
	return 10 * base
}

// length is a length in a picture.
func length(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// table writes rows below their heads; the columns from the second on are numbers.
func (d *page) table(heads []string, rows [][]string) {
	d.printf("<div class=\"wide\"><table>\n<thead><tr>")
	for _, h := range heads {
		d.printf("<th>%s</th>", h)
	}
	d.printf("</tr></thead>\n<tbody>\n")
	for _, r := range rows {
		d.printf("<tr>")
		for _, cell := range r {
			d.printf("<td>%s</td>", term.Escape(cell))
		}
		d.printf("</tr>\n")
	}
	d.printf("</tbody></table></div>\n")
}

func amount(x float64) string { return term.Count(int64(x)) }

func size(x float64) string { return term.Bytes(int64(x)) }

func usd(x float64) string {
	if x > 0 && x < .01 {
		return fmt.Sprintf("$%.2g", x)
	}
	return dollars(x)
}
