// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster.dev/muster/internal/console/page"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/platform/termsafe"
)

const (
	// oldest is how old a reading may be to be the first that a page shows; its stream brings the next one.
	oldest = time.Minute
	// oldestData is how old a reading may be that a program gets.
	oldestData = 2 * time.Second
	// mostFilter is how long a filter may be, in bytes.
	mostFilter = 200
	// textLines is how many lines of a machine's logs are shown as text.
	textLines = 1000
)

// errNoRights says that a viewer may not see why a machine is as it is.
var errNoRights = fmt.Errorf("%w: this needs all rights to the cluster that docs/console.md lists", ErrForbidden)

// shown makes what a path shows: its frame, without the token, and its view. An error about what is not there wraps
// ErrNotFound.
func (s *Server) shown(ctx context.Context, h held, at *url.URL) (page.Frame, any, error) {
	filter := at.Query().Get("q")
	if len(filter) > mostFilter {
		filter = filter[:mostFilter]
	}
	filter = strings.ToValidUTF8(filter, "")
	frame := page.Frame{Address: at.EscapedPath(), At: h.facts.At, Flags: s.Flags}
	if filter != "" {
		frame.Address += "?" + url.Values{"q": {filter}}.Encode()
	}
	switch path := at.Path; {
	case path == "/":
		frame.Name, frame.Title = page.Overview, "Overview"
		return frame, view.NewOverview(h.facts, filter), nil
	case path == "/certificates":
		frame.Name, frame.Title = page.Certificates, "Certificates"
		return frame, view.NewCertificates(h.facts, filter), nil
	case path == "/access":
		frame.Name, frame.Title = page.Access, "Access"
		return frame, view.NewAccess(h.facts, filter), nil
	case path == "/changes":
		frame.Name, frame.Title = page.Changes, "Changes"
		return frame, view.NewChanges(h.facts), nil
	case strings.HasPrefix(path, "/machines/"):
		name := strings.TrimPrefix(path, "/machines/")
		id, ok := view.FindMachine(h.facts, name)
		if !ok {
			return frame, nil, fmt.Errorf("there is no machine %q: %w", termsafe.Line(name), ErrNotFound)
		}
		report, err := diagnosis.Report{}, errNoRights
		if h.explains(id) {
			report, err = h.reading.Explain(ctx, "machine", id)
		}
		if err != nil {
			report = diagnosis.Report{Kind: "machine", Name: id, Unseen: []diagnosis.Unseen{{What: "why it is as it is", Why: err.Error()}}}
		}
		frame.Name, frame.Title = page.Machine, id
		shown, _ := view.NewMachinePage(h.facts, id, redacted(report))
		return frame, shown, nil
	}
	return frame, nil, fmt.Errorf("there is no page %q: %w", termsafe.Line(at.Path), ErrNotFound)
}

// page answers with a page.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	h, err := s.seen(r.Context(), oldest)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.keeper.want()
	frame, shown, err := s.shown(r.Context(), h, r.URL)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	html, err := s.pages.Whole(s.frame(r, frame), shown)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(html) //nolint:gosec // html/template escapes it
}

// viewed answers with the view of a page as JSON. Before a name in the request, the path ends with a slash.
func (s *Server) viewed(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h, err := s.seen(r.Context(), oldestData)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		_, shown, err := s.shown(r.Context(), h, &url.URL{Path: path + r.PathValue("name"), RawQuery: r.URL.RawQuery})
		s.data(w, r, shown, err)
	}
}

// explainAll answers with what muster explain -o json prints.
func (s *Server) explainAll(w http.ResponseWriter, r *http.Request) {
	h, err := s.seen(r.Context(), oldestData)
	all := h.facts.Wrong
	if all.Reports == nil {
		all.Reports = []diagnosis.Report{}
	}
	s.data(w, r, all, err)
}

// explain answers with what muster explain KIND NAME -o json prints.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	h, err := s.seen(r.Context(), oldestData)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	kind, name := r.PathValue("kind"), r.PathValue("name")
	if h.rights != nil {
		id, ok := view.FindMachine(h.facts, name)
		if kind != "machine" || !ok || !h.explains(id) {
			s.fail(w, r, errNoRights)
			return
		}
		name = id // the reading knows machines of others, too, and they may go by the same name
	}
	report, err := h.reading.Explain(r.Context(), kind, name)
	s.data(w, r, report, err)
}

// objects answers with what muster get KIND [NAME] -o json prints.
func (s *Server) objects(w http.ResponseWriter, r *http.Request) {
	if s.forbidden(w, r, "Objects are the user's of the command. aws eks and kubectl show them by your own rights.") {
		return
	}
	objects, err := s.Source.Objects(r.Context(), r.PathValue("kind"), r.PathValue("name"), r.URL.Query().Get("cluster"))
	s.data(w, r, objects, err)
}

// data answers with a value as JSON, without secrets.
func (s *Server) data(w http.ResponseWriter, r *http.Request, value any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	text, _, err := redaction.JSON(value)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(bytes.TrimSpace(text), '\n')) //nolint:gosec // JSON, which no browser takes for HTML
}

// logs answers with the newest lines of a machine's logs.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	h, err := s.seen(r.Context(), oldest)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	id, ok := view.FindMachine(h.facts, r.PathValue("name"))
	if !ok {
		s.fail(w, r, fmt.Errorf("there is no machine %q: %w", termsafe.Line(r.PathValue("name")), ErrNotFound))
		return
	}
	if !h.explains(id) {
		s.fail(w, r, errNoRights)
		return
	}
	var out bytes.Buffer
	if err := s.Source.Logs(r.Context(), id, textLines, false, &out); err != nil {
		s.fail(w, r, err)
		return
	}
	text, _ := redaction.Text(strings.ToValidUTF8(out.String(), "\uFFFD"))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(termsafe.Lines(text)))
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, ErrForbidden):
		s.refuse(w, r, http.StatusForbidden, "Not allowed", err.Error())
	case errors.Is(err, ErrNotFound):
		s.refuse(w, r, http.StatusNotFound, "Not found", err.Error())
	case r.Context().Err() != nil: // nobody waits for the answer
	default:
		s.refuse(w, r, http.StatusServiceUnavailable, "Not to be seen now", err.Error())
	}
}

// refuse answers with an error: for a program as JSON, for a person as a page.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code int, heading, why string) {
	if strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/events" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": heading + ": " + why})
		return
	}
	words := page.Plain{Heading: heading, Lines: []string{why}}
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest:
		words.Command = page.Frame{Flags: s.Flags}.Command("console")
	case http.StatusServiceUnavailable:
		words.Command = page.Frame{Flags: s.Flags}.Command("status")
	}
	s.plain(w, code, words)
}

// plain answers with a page of a few words.
func (s *Server) plain(w http.ResponseWriter, code int, words page.Plain) {
	html, err := s.pages.Plain(words)
	if err != nil {
		http.Error(w, words.Heading, code)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(html)
}
