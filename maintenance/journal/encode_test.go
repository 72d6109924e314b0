package journal

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// A step is written as encoding/json would write it, whatever is in it: a field that is added here or there has to be written, too.
func TestStepsAsJSON(t *testing.T) {
	written := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		var s Step
		draw(rt, reflect.ValueOf(&s).Elem(), written)
		want, err := marshal(s)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := s.append(nil)
		if err != nil || string(got) != string(want) {
			rt.Fatalf("%v\ngot  %s\nwant %s", err, got, want)
		}
	})
	for name, n := range written {
		if n == 0 {
			t.Errorf("%s was never drawn", name)
		}
	}
	bad := Step{Facts: json.RawMessage("{")}
	if _, err := bad.append(nil); err == nil {
		t.Error("what is no JSON was written")
	}
}

// draw fills a value with what may stand in a manifest, half of the fields left as they are.
func draw(rt *rapid.T, v reflect.Value, written map[string]int) {
	for i := range v.NumField() {
		f, kind := v.Field(i), v.Type().Field(i)
		if !kind.IsExported() || kind.Tag.Get("json") == "-" {
			continue
		}
		name := v.Type().Name() + "." + kind.Name
		if written[name] += 0; !rapid.Bool().Draw(rt, name) {
			continue
		}
		written[name]++
		switch f.Kind() {
		case reflect.String:
			f.SetString(rapid.OneOf(rapid.StringMatching(`[ -~]{0,9}`), rapid.String(), rapid.Just("<&>\u2028\xff\"\\\n")).Draw(rt, "text"))
		case reflect.Int, reflect.Int64:
			f.SetInt(rapid.Int64().Draw(rt, "number"))
		case reflect.Uint32, reflect.Uint64:
			f.SetUint(uint64(rapid.Uint32().Draw(rt, "number")))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Struct:
			draw(rt, f, written)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			draw(rt, f.Elem(), written)
		case reflect.Slice:
			if f.Type().Elem().Kind() != reflect.Uint8 {
				all := reflect.MakeSlice(f.Type(), rapid.IntRange(1, 3).Draw(rt, "length"), 3)
				for k := range all.Len() {
					if e := all.Index(k); e.Kind() == reflect.Struct {
						draw(rt, e, written)
					} else {
						e.SetString(rapid.String().Draw(rt, "item"))
					}
				}
				f.Set(all)
				continue
			}
			raw := []byte("{\"a\" : [1,\n \"<\"]}")
			if f.Type() != reflect.TypeFor[json.RawMessage]() {
				raw = rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "bytes")
			}
			f.SetBytes(raw)
		default:
			rt.Fatalf("%s is of a kind that is not drawn: %s", name, f.Kind())
		}
	}
}
