// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/platform/termsafe"
)

const (
	// aliveTime is how often a stream says something, and writeTime how long a browser may take to read it.
	aliveTime, writeTime = 15 * time.Second, 10 * time.Second
	// newLines is how many lines of a log a page begins with; mostLine is how much of a line it gets, in bytes.
	newLines, mostLine = 200, 4096
)

// stream is one stream of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
type stream struct {
	to      http.ResponseWriter
	control *http.ResponseController
}

// send writes one event. The data has no line ends.
func (s stream) send(name, data string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))                           // not of a recorder in a test
	if _, err := fmt.Fprintf(s.to, "event: %s\ndata: %s\n\n", name, data); err != nil { //nolint:gosec // a stream of events is not HTML, and its HTML is escaped
		return err
	}
	return s.control.Flush()
}

// sendJSON writes one event whose data is JSON.
func (s stream) sendJSON(name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.send(name, string(raw))
}

// events keeps a page current: `view` has what is in its main element, `beat` the moment that it is about, `log` lines of
// a machine's logs, and `end` says that the console ends. The page is `view` of the query, `shown` the hash of what it
// shows; `logs` is new or on for a page that follows logs.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	leave, ok := s.streams.take(viewingOf(r.Context()).owner())
	if !ok {
		s.refuse(w, r, http.StatusServiceUnavailable, "Too many streams", fmt.Sprintf("at most %d pages are kept current at once, %d of an IAM identity, %d of all of them", mostStreams, mostOfIdentity, mostOfIdentities))
		return
	}
	defer leave()
	at, err := url.Parse(r.URL.Query().Get("view"))
	if err != nil || at.IsAbs() || at.Host != "" {
		s.refuse(w, r, http.StatusBadRequest, "Not a page", "view must be the path of a page")
		return
	}
	h, err := s.seen(r.Context(), oldest)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if _, _, err := s.shown(r.Context(), h, at); err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.keeper.watch()()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	out := stream{w, http.NewResponseController(w)}
	lines := make(chan []string)
	if wanted := r.URL.Query().Get("logs"); wanted != "" {
		s.follow(ctx, h, at, wanted, lines)
	}
	s.keep(ctx, out, at, r.URL.Query().Get("shown"), lines)
}

// keep writes events until the stream ends.
func (s *Server) keep(ctx context.Context, out stream, at *url.URL, shown string, lines <-chan []string) {
	alive := time.NewTicker(aliveTime)
	defer alive.Stop()
	for {
		h, err := s.filtered(ctx, s.keeper.newest())
		if err != nil { // such as a viewer who has no rights any more
			_ = out.send("end", termsafe.Line(err.Error()))
			return
		}
		if !follows(h, at) {
			lines = nil
		}
		if shown, err = s.update(ctx, out, h, at, shown); err != nil {
			return
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-s.ending:
				_ = out.send("end", "the console has ended") // the browser is told, if it still listens
				return
			case <-h.next:
				waiting = false
			case added := <-lines:
				now, ended := s.filtered(ctx, s.keeper.newest()) // the next reading may be long in coming
				if ended != nil {
					_ = out.send("end", termsafe.Line(ended.Error()))
					return
				}
				if !follows(now, at) {
					lines = nil
					continue
				}
				err = out.sendJSON("log", added)
			case <-alive.C:
				err = out.send("alive", "")
			}
			if err != nil {
				return
			}
		}
	}
}

// follows reports whether the viewer may see the logs of the machine that a page is about.
func follows(h held, at *url.URL) bool {
	name, is := strings.CutPrefix(at.Path, "/machines/")
	id, found := view.FindMachine(h.facts, name)
	return is && found && h.explains(id)
}

// update writes what changed, and the moment that it is of. It returns the hash of what the page shows then.
func (s *Server) update(ctx context.Context, out stream, h held, at *url.URL, shown string) (string, error) {
	frame, what, err := s.shown(ctx, h, at)
	if err != nil { // such as a machine that is gone
		return shown, out.send("end", termsafe.Line(err.Error()))
	}
	html, now, err := s.pages.Part(frame, what)
	if err != nil {
		return shown, err
	}
	if now != shown {
		if err := out.sendJSON("view", map[string]string{"html": html, "shown": now}); err != nil {
			return shown, err
		}
	}
	return now, out.send("beat", "as of "+h.facts.At.UTC().Format(time.TimeOnly+" UTC"))
}

// follow sends the lines of the logs of the machine that a page is about until the context ends.
func (s *Server) follow(ctx context.Context, h held, at *url.URL, wanted string, lines chan<- []string) {
	name, ok := strings.CutPrefix(at.Path, "/machines/")
	id, found := view.FindMachine(h.facts, name)
	if !ok || !found || !h.explains(id) {
		return
	}
	tail := newLines
	if wanted != "new" {
		tail = 0
	}
	go func() {
		out := &lineWriter{ctx: ctx, to: lines}
		err := s.Source.Logs(ctx, id, tail, true, out)
		if err != nil && ctx.Err() == nil {
			_, _ = io.WriteString(out, err.Error()+"\n")
		}
	}()
}

// lineWriter sends whole lines, each made safe and bounded. A write may end anywhere, also within a line or a key.
type lineWriter struct {
	ctx     context.Context //nolint:containedctx // io.Writer has none
	to      chan<- []string
	partial []byte
	// rest says that a line was too long, and is left out until it ends; key how many lines more may be those of a private key.
	rest bool
	key  int
}

const (
	// mostHeld is how much of a line is waited for, in bytes: a secret may be anywhere in it.
	mostHeld = 64 << 10
	// keyLines is more than a private key has in PEM, and keyBegins what is before its lines.
	keyLines  = 100
	keyBegins = "-----BEGIN PRIVATE KEY\n"
)

// Write implements io.Writer.
func (l *lineWriter) Write(data []byte) (int, error) {
	written := len(data)
	if l.rest {
		_, after, ended := bytes.Cut(data, []byte("\n"))
		if !ended {
			return written, nil
		}
		data, l.rest = after, false
	}
	l.partial = append(l.partial, data...)
	end := bytes.LastIndexByte(l.partial, '\n')
	if end < 0 {
		if len(l.partial) <= mostHeld {
			return written, nil
		}
		end, l.rest = mostLine, true
		l.partial = l.partial[:mostLine]
	}
	text := l.clean(strings.ToValidUTF8(string(l.partial[:end]), "\uFFFD"))
	l.partial = append([]byte{}, l.partial[min(end+1, len(l.partial)):]...)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > mostLine {
			line = strings.ToValidUTF8(line[:mostLine], "") + "…"
		}
		lines = append(lines, termsafe.Line(line))
	}
	select {
	case l.to <- lines:
		return written, nil
	case <-l.ctx.Done():
		return 0, l.ctx.Err()
	}
}

// clean takes secrets out of lines. A private key may have begun in lines before them, and may go on in those that come.
func (l *lineWriter) clean(text string) string {
	if l.key > 0 {
		text = keyBegins + text
	}
	begun := strings.LastIndex(text, "-----BEGIN ")
	open := begun >= 0 && strings.Contains(text[begun:], "PRIVATE KEY") && !strings.Contains(text[begun:], "-----END ")
	switch {
	case !open:
		l.key = 0
	case l.key > 0 && strings.HasPrefix(text[begun:], keyBegins):
		l.key = max(0, l.key-strings.Count(text, "\n"))
	default:
		l.key = keyLines
	}
	text, _ = redaction.Text(text)
	return text
}
