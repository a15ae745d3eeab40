// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/console/page"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/viewer"
)

const (
	// rightsLife is how long the rights of a session's viewer are as they were asked. A right that is taken away counts that long.
	rightsLife = 3 * time.Second
	// proofLife is how long a token that was used is remembered, which is more than it is good for.
	proofLife = time.Hour
)

// ErrForbidden is wrapped by errors of a Source about a viewer: the token is not one, or the identity has ended.
var ErrForbidden = errors.New("not allowed")

// viewing is who a session is of: the user of the command, or somebody who proved an IAM identity. It is that session's alone.
type viewing struct {
	who *viewer.Viewer // nil for the user of the command

	mu     sync.Mutex
	rights view.Rights
	at     time.Time // when they were asked; zero if they were not
}

// signInPage answers with the form in which a token is pasted.
func (s *Server) signInPage(w http.ResponseWriter, _ *http.Request) {
	signingIn(s, w, http.StatusOK, "")
}

// signingIn answers with the form, and with why a token was not taken.
func signingIn(s *Server, w http.ResponseWriter, code int, why string) {
	s.plain(w, code, page.Plain{
		Heading: "Sign in by IAM", Lines: []string{"Paste what this command prints. It proves your IAM identity to this console, once, and nowhere else."},
		Command: "aws eks get-token --cluster-name " + s.audience, SignIn: true, Why: why,
	})
}

// signIn begins a session of whoever made the token of the form.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	token := tokenOf(r.PostFormValue("proof"))
	if token == "" {
		signingIn(s, w, http.StatusBadRequest, "This is not a token: paste all that the command prints.")
		return
	}
	who, err := s.Source.Prove(r.Context(), viewer.Proof{Audience: s.audience, Token: token})
	if err != nil {
		code := http.StatusServiceUnavailable
		if errors.Is(err, ErrForbidden) {
			code = http.StatusForbidden
		}
		signingIn(s, w, code, err.Error())
		return
	}
	by := &viewing{who: &who}
	if !s.sessions.fresh(token, by.owner()) {
		signingIn(s, w, http.StatusForbidden, fmt.Sprintf("This token was used before, or the identity has signed in %d times in an hour: make another one.", mostProofs))
		return
	}
	if err := s.Record(who.ARN, client(r), "begin"); err != nil {
		s.refuse(w, r, http.StatusServiceUnavailable, "Nothing is shown", err.Error())
		return
	}
	http.SetCookie(w, s.sessions.prove(r.Host, by))
	s.plain(w, http.StatusOK, page.Plain{Heading: "Welcome", Lines: []string{"You are " + who.ARN}, Onward: "/"})
}

// tokenOf is the token in what a command prints: the token itself, or an ExecCredential. It is empty if there is none.
func tokenOf(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return text
	}
	var credential struct{ Status struct{ Token string } }
	if json.Unmarshal([]byte(text), &credential) != nil {
		return ""
	}
	return credential.Status.Token
}

// seen is what the viewer of a request may see of a reading that is at most so old.
func (s *Server) seen(ctx context.Context, age time.Duration) (held, error) {
	h, err := s.keeper.younger(ctx, age)
	if err != nil {
		return h, err
	}
	return s.filtered(ctx, h)
}

// filtered is what the viewer of a request may see of a reading. It fails if that cannot be said.
func (s *Server) filtered(ctx context.Context, h held) (held, error) {
	by := viewingOf(ctx)
	if by == nil {
		return held{next: h.next}, fmt.Errorf("%w: the request has no viewer", ErrForbidden)
	}
	if by.who == nil {
		return h, nil
	}
	rights, err := by.rightsOf(ctx, s, h.facts)
	if err != nil {
		return held{next: h.next}, err
	}
	h.rights, h.facts = &rights, h.facts.For(rights)
	return h, nil
}

// rightsOf are the rights of a viewer, as they were rightsLife ago at most.
func (by *viewing) rightsOf(ctx context.Context, s *Server, facts view.Facts) (view.Rights, error) {
	by.mu.Lock()
	defer by.mu.Unlock()
	if now := s.Now(); by.at.IsZero() || now.Sub(by.at) >= rightsLife {
		rights, err := s.Source.Rights(ctx, *by.who, facts)
		if err != nil {
			by.at = time.Time{}
			return view.Rights{}, fmt.Errorf("asking for your rights: %w", err)
		}
		by.rights, by.at = rights, now
	}
	return by.rights, nil
}

// viewingOf is who a request is of.
func viewingOf(ctx context.Context) *viewing {
	own, _ := ctx.Value(sessionKey{}).(session)
	return own.by
}

// personOf is the IAM identity whose rights a request has; nil for the user of the command.
func personOf(ctx context.Context) *viewer.Viewer {
	if by := viewingOf(ctx); by != nil {
		return by.who
	}
	return nil
}

// viewerOf names whose rights a request has.
func viewerOf(r *http.Request) string {
	if who := personOf(r.Context()); who != nil {
		return who.ARN
	}
	return "the user of the command"
}

// forbidden refuses a viewer by IAM what only the user of the command gets.
func (s *Server) forbidden(w http.ResponseWriter, r *http.Request, instead string) bool {
	if personOf(r.Context()) == nil {
		return false
	}
	s.refuse(w, r, http.StatusForbidden, "Not for an IAM identity", instead)
	return true
}
