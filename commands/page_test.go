//go:build page

package commands

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
	for _, mode := range []struct {
		name  string
		flags []string
		light bool
	}{{"light", nil, true}, {"dark", []string{"--force-dark-mode", "--blink-settings=preferredColorScheme=0"}, false}} {
		shot := filepath.Join(dir, mode.name+".png")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		cmd := exec.CommandContext(ctx, browser, append(mode.flags, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+t.TempDir(),
			"--window-size=900,2400", "--screenshot="+shot, "file://"+page)...)
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s", mode.name, err, out)
		}
		f, err := os.Open(shot)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := png.Decode(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
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
