// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/page"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/platform/termsafe"
)

// TokenHeader is the header by which a program sends the session's token with a request that makes something.
const TokenHeader = "X-Muster-Token" //nolint:gosec // G101: the name of a header

// RefusedError is wrapped by errors of a Source that makes nothing, or no more: because the viewer may not, or because of what is asked for.
type RefusedError struct {
	// Code is the status of the answer: 400, 403 or 409.
	Code int
	// Problems are what is wrong.
	Problems []blueprint.Problem
}

// Error joins the problems.
func (e *RefusedError) Error() string {
	var all []string
	for _, p := range e.Problems {
		if p.Field != "" {
			p.Message = p.Field + ": " + p.Message
		}
		all = append(all, p.Message)
	}
	return strings.Join(all, "; ")
}

// readOnly answers in the place of what makes something.
func readOnly(s *Server, w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, http.StatusNotFound, "The console is read-only", "It was started with --read-only, and makes nothing.")
}

// tokenIs reports whether a request of a session has the session's token.
func tokenIs(r *http.Request, token string) bool {
	own := sessionOf(r)
	return own.token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(own.token)) == 1
}

// sessionOf is the session of a request that the server let through; the zero session without one.
func sessionOf(r *http.Request) session {
	own, _ := r.Context().Value(sessionKey{}).(session)
	return own
}

// sessionData answers with what a program needs to know of its session.
func sessionData(s *Server, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"viewer": viewerOf(r), "token": sessionOf(r).token, "readOnly": s.ReadOnly})
}

// newPage answers with the form, and with the texts that say the same as what is filled in.
func newPage(s *Server, w http.ResponseWriter, r *http.Request) {
	showCreate(s, w, r, r.URL.Query(), nil, http.StatusOK, nil)
}

// create makes what a form says.
func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.refuse(w, r, http.StatusBadRequest, "Nothing was made", "The form cannot be read: "+err.Error())
		return
	}
	values := r.PostForm
	if !tokenIs(r, values.Get("token")) {
		s.refuse(w, r, http.StatusForbidden, "Nothing was made", "The request is not one of this console's pages.")
		return
	}
	values.Del("token")
	if !values.Has(blueprint.FieldToken) { // otherwise nothing would count as filled in
		values.Set(blueprint.FieldToken, "")
	}
	form := blueprint.ReadForm(values)
	made, code, err := view.Made{}, http.StatusBadRequest, error(nil)
	if problems := form.Problems(); len(problems) == 0 {
		made, code, err = carryOut(s, r, form.Blueprint)
	}
	showCreate(s, w, r, values, &made, code, err)
}

// showCreate answers with the form, with what was made, if something was, or with why nothing was.
func showCreate(s *Server, w http.ResponseWriter, r *http.Request, values url.Values, made *view.Made, code int, err error) {
	h, stale := s.seen(r.Context(), oldest)
	if stale != nil && (r.Context().Err() != nil || personOf(r.Context()) != nil) {
		s.fail(w, r, stale)
		return
	}
	facts := h.facts
	facts.At = s.Now()
	shown, rendering := view.NewCreate(facts, s.Region, values, secret()[:mostToken])
	if rendering != nil {
		s.fail(w, r, rendering)
		return
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		shown.Problems = append(shown.Problems, shown.Form.Placed(refused.Problems)...)
	} else if err != nil {
		shown.Problems = append(shown.Problems, blueprint.Problem{Message: err.Error()})
	}
	if made != nil && len(made.Objects) > 0 {
		shown.Outcome = made
	}
	html, err := s.pages.Whole(s.frame(r, page.Frame{Name: page.NewCluster, Title: "New", At: facts.At}), shown)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(html) //nolint:gosec // html/template escapes it
}

// mostToken is how long the client token is that a form begins with.
const mostToken = 24

// created makes what the body of a request says, which parse reads.
func created(s *Server, parse func([]byte) (blueprint.Blueprint, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case !tokenIs(r, r.Header.Get(TokenHeader)):
			s.refuse(w, r, http.StatusForbidden, "Nothing was made", "The header "+TokenHeader+" must have the session's token, which GET /api/session says.")
			return
		case err != nil || kind != "application/json":
			s.refuse(w, r, http.StatusUnsupportedMediaType, "Nothing was made", "The body must be of the type application/json.")
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.refuse(w, r, http.StatusRequestEntityTooLarge, "Nothing was made", fmt.Sprintf("The body cannot be read, or has more than %d bytes.", mostPlan))
			return
		}
		plan, err := parse(body)
		if err != nil {
			s.refuse(w, r, http.StatusBadRequest, "Nothing was made", err.Error())
			return
		}
		if problems := plan.Problems(); len(problems) > 0 {
			notMade(w, http.StatusBadRequest, view.Made{}, &RefusedError{Problems: problems})
			return
		}
		made, code, err := carryOut(s, r, plan)
		if err != nil {
			notMade(w, code, made, err)
			return
		}
		answerMade(w, code, made)
	}
}

// answerMade answers with what was made.
func answerMade(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(value)
}

// notMade answers with why something was not made, and with what was made before it.
func notMade(w http.ResponseWriter, code int, made view.Made, err error) {
	problems := []blueprint.Problem{{Message: err.Error()}}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		problems = refused.Problems
	}
	answerMade(w, code, map[string]any{"error": termsafe.Line(err.Error()), "problems": problems, "objects": made.Objects})
}

// carryOut has the source make a blueprint without problems with the viewer's rights. It is written down before.
func carryOut(s *Server, r *http.Request, plan blueprint.Blueprint) (view.Made, int, error) {
	if err := s.record(r, "create "+described(plan)); err != nil {
		return view.Made{}, http.StatusServiceUnavailable, err
	}
	made, err := s.Source.Create(r.Context(), personOf(r.Context()), plan)
	refused, is := errors.AsType[*RefusedError](err)
	switch {
	case is:
		return made, refused.Code, err
	case err != nil:
		return made, http.StatusServiceUnavailable, err
	case made.Waiting:
		return made, http.StatusAccepted, nil
	}
	return made, http.StatusOK, nil
}

// described names what a blueprint makes.
func described(b blueprint.Blueprint) string {
	var names []string
	for _, g := range b.Groups {
		names = append(names, "nodegroup "+g.Name)
	}
	if !b.Exists {
		names = append([]string{"cluster " + b.Name}, names...)
		for _, a := range b.Addons {
			names = append(names, "addon "+a)
		}
		return strings.Join(names, ", ")
	}
	return strings.Join(names, ", ") + " of cluster " + b.Name
}
