// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenrefusal"
	"muster.dev/muster/internal/iam/viewer"
)

// viewers answer the console about people who look at it by an IAM identity.
type viewers struct {
	identities *identityservice.Service
	front      *awsfront.Front
	endpoint   string // of STS
}

// answering has a service answer about identities of pods and of people who look at the console, until it is undone.
func answering(s *Service, e *serviceaccounts.Explainer, v *viewers) (undo func()) {
	set := func(e *serviceaccounts.Explainer, v *viewers) {
		s.mu.Lock()
		s.explainer, s.viewers = e, v
		s.mu.Unlock()
	}
	set(e, v)
	return func() { set(nil, nil) }
}

func (c commands) viewersNow() (*viewers, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.viewers == nil {
		return nil, errNoIdentities
	}
	return c.viewers, nil
}

// ProveViewer implements [controlsocket.Service].
func (c commands) ProveViewer(ctx context.Context, p viewer.Proof) (viewer.Viewer, error) {
	v, err := c.viewersNow()
	if err != nil {
		return viewer.Viewer{}, err
	}
	if !viewer.IsAudience(p.Audience) {
		return viewer.Viewer{}, fmt.Errorf("%w: %.80q is not the audience of a console", controlsocket.ErrRefused, p.Audience)
	}
	hosts, err := ststoken.NewHosts("aws", nil, []string{v.endpoint})
	if err != nil {
		return viewer.Viewer{}, err
	}
	token, err := ststoken.Parse(p.Token, p.Audience, hosts.Only(), time.Now())
	if err != nil {
		return viewer.Viewer{}, notProven(err)
	}
	made, err := v.identities.Verify(ctx, p.Audience, token.Host, token.Query)
	if err != nil {
		return viewer.Viewer{}, notProven(err)
	}
	return viewer.Viewer{
		ARN: made.ARN, Account: made.Account, UserID: made.UserID, SessionName: made.SessionName,
		AccessKeyID: token.Signed.AccessKeyID, SessionToken: token.Signed.SessionToken, Until: token.Expires,
	}, nil
}

// notProven is a refusal of a token; other errors stay.
func notProven(err error) error {
	_, malformed := errors.AsType[*tokenrefusal.Refusal](err)
	_, unknown := errors.AsType[*keyservice.Unknown](err)
	if malformed || unknown {
		return fmt.Errorf("%w: %w", controlsocket.ErrRefused, err)
	}
	return err
}

// callerOf is a viewer as IAM is asked about it. The error wraps [controlsocket.ErrRefused] if the key has ended, or if its holder has another
// name than the one that is on record for what it reads.
func (v *viewers) callerOf(who viewer.Viewer) (awsfront.Caller, error) {
	caller, err := identityservice.Holder(v.identities, who.AccessKeyID, who.SessionToken)
	if err != nil {
		return nil, ended(err)
	}
	if caller.ARN().String() != who.ARN {
		return nil, fmt.Errorf("%w: the key is not one of %.300s any more", controlsocket.ErrRefused, who.ARN)
	}
	return caller, nil
}

// mostQuestions is how many questions about a viewer are answered at once.
const mostQuestions = 10_000

// DecideViewer implements [controlsocket.Service].
func (c commands) DecideViewer(_ context.Context, d viewer.Decision) ([]viewer.Refusal, error) {
	v, err := c.viewersNow()
	if err != nil {
		return nil, err
	}
	if len(d.Questions) > mostQuestions {
		return nil, fmt.Errorf("%w: there are %d questions: at most %d are answered at once", controlsocket.ErrRefused, len(d.Questions), mostQuestions)
	}
	caller, err := v.callerOf(d.Viewer)
	if err != nil {
		return nil, err
	}
	answers := make([]viewer.Refusal, len(d.Questions))
	for i, q := range d.Questions {
		if err := v.identities.Authorize(caller, q.Action, awsfront.Target{Resource: q.Resource}); err != nil {
			fault, ok := errors.AsType[*awsfault.Error](err)
			if !ok {
				return nil, err
			}
			answers[i] = viewer.Refusal{Code: fault.Code, Message: fault.Message, Status: http.StatusForbidden}
		}
	}
	return answers, nil
}

// ended is a refusal of a key that has no rights any more; other errors stay.
func ended(err error) error {
	if fault, ok := errors.AsType[*awsfault.Error](err); ok && fault.Code != "ServiceUnavailable" {
		return fmt.Errorf("%w: %s: %s", controlsocket.ErrRefused, fault.Code, fault.Message)
	}
	return err
}

// viewerActions are what the console makes for a viewer.
func viewerActions() []string { return []string{"CreateCluster", "CreateNodegroup", "CreateAddon"} }

// RequestOfViewer implements [controlsocket.Service]: the request is checked, judged and logged as one of the viewer's own.
func (c commands) RequestOfViewer(ctx context.Context, r viewer.Request) (viewer.Refusal, error) {
	v, err := c.viewersNow()
	if err != nil {
		return viewer.Refusal{}, err
	}
	if !slices.Contains(viewerActions(), r.Action) {
		return viewer.Refusal{}, fmt.Errorf("%w: the console does not ask for %.80q", controlsocket.ErrRefused, r.Action)
	}
	input, err := r.Object()
	if err != nil {
		return viewer.Refusal{}, fmt.Errorf("%w: %w", controlsocket.ErrRefused, err)
	}
	caller, err := v.callerOf(r.Viewer)
	if err != nil {
		return viewer.Refusal{}, err
	}
	_, err = v.front.Do(ctx, awsfront.Inside{Caller: caller, Service: "eks", Action: r.Action, Input: input})
	if fault, ok := errors.AsType[*awsfault.Error](err); ok {
		return viewer.Refusal{Code: fault.Code, Message: fault.Message, Status: fault.Status}, nil
	}
	return viewer.Refusal{}, err
}
