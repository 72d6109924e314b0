//go:build page

package commands

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oc/fixtures"
)

// An exported page as headless Chromium shows it, in light and in dark: its picture is there, long words stay in it, and nothing that was
// said runs or is fetched. OC_CHROMIUM is the browser; OC_PAGES, if it is set, the folder that keeps what was seen.
func TestPage(t *testing.T) {
	browser := os.Getenv("OC_CHROMIUM")
	if browser == "" {
		t.Fatal("OC_CHROMIUM names no browser; run .ci/page")
	}
	dir := os.Getenv("OC_PAGES")
	if dir == "" {
		dir = t.TempDir()
	}
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()

	sign := color.RGBA{255, 0, 170, 255}
	picture := image.NewRGBA(image.Rect(0, 0, 200, 100))
	for i := range picture.Pix {
		picture.Pix[i] = []byte{sign.R, sign.G, sign.B, sign.A}[i%4]
	}
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, picture); err != nil {
		t.Fatal(err)
	}
	talk := forgedTalk().User(`<img src="` + server.URL + `/text.png"> ![](` + server.URL + `/md.png) ` + strings.Repeat("x", 400))
	talk.Line(`{"type":"message","id":"pp","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(encoded.Bytes()) +
		`"},{"type":"image_url","image_url":{"url":"` + server.URL + `/block.png"}}]}}`)
	page := filepath.Join(dir, "page.html")
	if a := at(t, talkState(t, fixtures.FileEra, talk), "sessions", "export", "main", "--format", "html", "--output", page, "--overwrite"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	for _, mode := range modes {
		seen := looks(t, browser, page, filepath.Join(dir, mode.name+".png"), mode.flags, 2400)
		signs, edge := 0, 0
		ground := int(color.GrayModel.Convert(seen.At(3, 3)).(color.Gray).Y)
		size := seen.Bounds().Size()
		for y := range size.Y {
			for x := range size.X {
				switch c := color.RGBAModel.Convert(seen.At(x, y)).(color.RGBA); {
				case c == sign:
					signs++
				case x >= size.X-10:
					if g := int(color.GrayModel.Convert(c).(color.Gray).Y); g+30 < ground || g > ground+30 {
						edge++
					}
				}
			}
		}
		if signs < 200*100*9/10 {
			t.Errorf("%s: %d points of the picture are seen", mode.name, signs)
		}
		if edge > 0 {
			t.Errorf("%s: %d points stand at the edge: something is too wide", mode.name, edge)
		}
		if mode.light != (ground > 200) || !mode.light != (ground < 60) {
			t.Errorf("%s: the ground is %d", mode.name, ground)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the page fetched %d things", n)
	}
}

// modes are light and dark, and how a browser is told.
var modes = []struct {
	name  string
	flags []string
	light bool
}{{"light", nil, true}, {"dark", []string{"--force-dark-mode", "--blink-settings=preferredColorScheme=0"}, false}}

// looks is what a browser shows of a page; the picture stays at shot.
func looks(t *testing.T, browser, page, shot string, flags []string, height int) image.Image {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, append(slices.Clone(flags), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+t.TempDir(),
		fmt.Sprintf("--window-size=900,%d", height), "--screenshot="+shot, "file://"+page)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", shot, err, out)
	}
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// The report of the demo state as headless Chromium shows it, in light and in dark: its pictures are there in the colours that the page
// means, nothing is too wide, and it is printed on more than one sheet.
func TestPageOfReport(t *testing.T) {
	browser := os.Getenv("OC_CHROMIUM")
	if browser == "" {
		t.Fatal("OC_CHROMIUM names no browser; run .ci/page")
	}
	dir := os.Getenv("OC_PAGES")
	if dir == "" {
		dir = t.TempDir()
	}
	state := shortDir(t, len("/home/ada"))
	if err := fixtures.Demo().Write(filepath.Join(state, ".openclaw")); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "report.html")
	if a := ocRun(t, state, map[string]string{"HOME": state, "OC_NOW": fmt.Sprint(int64(fixtures.Now)), "OPENCLAW_GATEWAY_PORT": "1"}, "report", "--html", page, "--overwrite"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	for _, mode := range modes {
		seen := looks(t, browser, page, filepath.Join(dir, "report-"+mode.name+".png"), mode.flags, 2900)
		colours := map[color.RGBA]int{}
		size := seen.Bounds().Size()
		ground := color.RGBAModel.Convert(seen.At(3, 3)).(color.RGBA)
		for y := range size.Y {
			for x := range size.X {
				c := color.RGBAModel.Convert(seen.At(x, y)).(color.RGBA)
				if colours[c]++; x >= size.X-10 && c != ground {
					t.Fatalf("%s: something stands at the edge, at %d, %d", mode.name, x, y)
				}
			}
		}
		want := map[bool][]color.RGBA{
			true:  {{0x2b, 0x6c, 0xb0, 255}, {0xc2, 0x57, 0x0c, 255}, {0x12, 0x80, 0x6f, 255}, {0x0b, 0x3c, 0x6f, 255}, {0x82, 0xb1, 0xdd, 255}},
			false: {{0x6a, 0xa8, 0xe6, 255}, {0xe8, 0x90, 0x5a, 255}, {0x45, 0xb8, 0xa3, 255}, {0xd6, 0xe8, 0xfa, 255}, {0x3d, 0x79, 0xb5, 255}},
		}[mode.light]
		for _, c := range want {
			if colours[c] < 100 {
				t.Errorf("%s: %d points of the colour %v", mode.name, colours[c], c)
			}
		}
		if light := ground.R > 200; light != mode.light {
			t.Errorf("%s: the ground is %v", mode.name, ground)
		}
	}
	printed := filepath.Join(dir, "report.pdf")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--user-data-dir="+t.TempDir(), "--print-to-pdf="+printed, "file://"+page).CombinedOutput(); err != nil {
		t.Fatalf("print: %v\n%s", err, out)
	}
	pdf, err := os.ReadFile(printed)
	if err != nil {
		t.Fatal(err)
	}
	if sheets := bytes.Count(pdf, []byte("/Type /Page\n")); sheets < 2 || sheets > 6 {
		t.Errorf("%d sheets", sheets)
	}
}
