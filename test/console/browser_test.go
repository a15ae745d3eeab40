// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
)

// patience is how long a browser may take for what a test wants. It is no promise.
const patience = time.Minute

// site is a console that is served, and a tab of a browser that has a session there.
type site struct {
	t       *testing.T
	source  *pageservertest.Source
	server  *pageserver.Server
	address string
	tab     context.Context //nolint:containedctx // chromedp keeps the tab in it
	end     func() error
	// said is what pages complained of: errors of scripts, and what the policy of contents refused.
	said chan string
}

// open serves facts and begins a session in a new browser.
func open(t *testing.T, f view.Facts, lines ...string) *site {
	t.Helper()
	s := &site{t: t, source: pageservertest.NewSource(f), said: make(chan string, 1000)}
	s.source.Lines = lines
	var err error
	s.server, err = pageserver.New(pageserver.Config{
		Source: s.source, Record: func(string, string, string) error { return nil }, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx, listener) }()
	s.address = "http://" + listener.Addr().String()
	s.end = func() error { cancel(); return <-served }
	t.Cleanup(cancel)
	s.browse(t)
	t.Cleanup(s.quiet)
	s.do(chromedp.Navigate(s.address+s.server.Ticket()), chromedp.WaitVisible("nav", chromedp.ByQuery))
	return s
}

// browse starts a browser with a directory of its own, which the driver makes and removes.
func (s *site) browse(t *testing.T) {
	t.Helper()
	options := slices.Clone(chromedp.DefaultExecAllocatorOptions[:])
	for _, flag := range []string{"no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	browser, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	tab, leave := chromedp.NewContext(browser)
	t.Cleanup(leave)
	s.tab = tab
	if err := chromedp.Run(tab); err != nil { // the browser lives as long as the context that it is started with
		t.Fatal(err)
	}
	chromedp.ListenTarget(tab, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			s.said <- "exception: " + event.ExceptionDetails.Error()
		case *runtime.EventConsoleAPICalled:
			s.said <- "console: " + string(event.Type)
		case *network.EventLoadingFailed:
			if event.BlockedReason != "" {
				s.said <- "blocked: " + string(event.BlockedReason)
			}
		}
	})
}

// do has the tab do something.
func (s *site) do(actions ...chromedp.Action) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.tab, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		s.t.Fatal(err)
	}
}

// value is what an expression of the page is.
func value[T any](s *site, expression string) T {
	s.t.Helper()
	var v T
	s.do(chromedp.Evaluate(expression, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// until waits until an expression of the page is true. The page may be another one meanwhile.
func (s *site) until(expression string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.tab, patience)
	defer cancel()
	for {
		var is bool
		err := chromedp.Run(ctx, chromedp.Evaluate(expression, &is))
		if err == nil && is {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s does not become true: %v; the page is %s", expression, err,
				value[string](s, `[location.href, document.activeElement.id, document.getElementById("filter")?.value, document.getElementById("live")?.innerText, document.querySelectorAll(".map .m").length].join(" | ")`))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// quiet fails if a page complained.
func (s *site) quiet() {
	s.t.Helper()
	for {
		select {
		case said := <-s.said:
			s.t.Error(said)
		default:
			return
		}
	}
}

// shape is a window in a colour scheme.
type shape struct {
	name   string
	width  int64
	height int64
	dark   bool
}

func shapes() []shape {
	return []shape{{"wide", 1280, 800, false}, {"dark", 1280, 800, true}, {"narrow", 380, 800, false}, {"narrow-dark", 380, 800, true}}
}

// be gives the tab a shape.
func (s *site) be(window shape) {
	scheme := "light"
	if window.dark {
		scheme = "dark"
	}
	s.do(emulation.SetDeviceMetricsOverride(window.width, window.height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// shoot keeps a picture of the whole page, in the directory that MUSTER_SCREENSHOTS names.
func (s *site) shoot(name string) {
	s.t.Helper()
	dir := os.Getenv("MUSTER_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture []byte
	s.do(chromedp.FullScreenshot(&picture, 100))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "_")+".png"), picture, 0o644); err != nil {
		s.t.Fatal(err)
	}
}
