// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An outage lasts at least this long, and this long after the service has been started again everybody must be let in.
const (
	outage   = time.Minute
	recovery = 2 * time.Second
)

// serviceAway kills the service, in which STS and IAM are, and its guard, so that nobody starts it again until somebody does. Whom the
// authenticator knew goes on coming in, with new tokens too; of whom it never heard nobody can tell. Mappings are the cluster's, and count.
func (w *iam) serviceAway(p *people) {
	creator, dave := w.creator(), w.user("dave")
	p.bob = w.user("bob")
	known := w.token(creator, "muster")
	w.believed(known, creatorARN)
	w.refused("bob, whom no entry names yet", w.token(p.bob, "muster"), http.StatusForbidden, "no-entry")
	k := w.machineKeys(pageMachine, "muster-node")
	w.becomes(k, "system:node:"+nodeAt(pageMachine))
	for _, name := range []string{"guard", "serve"} {
		w.kill(name)
	}
	began := time.Now()
	all := w.everySecond(known, creator, k)
	fresh := w.token(dave, "muster")
	why := w.refused("who was not known is told that nobody can tell", fresh, http.StatusServiceUnavailable, "unavailable")
	if !strings.Contains(why.Saw, "the identity service does not answer") {
		w.t.Errorf("the authenticator says %+v", why)
	}
	if who, err := w.whoami(w.t.Context(), fresh); err == nil || !unauthorized(err) {
		w.t.Errorf("the API server takes him for %q: %v", who.Username, err)
	}
	if _, err := w.aws(w.admin, "sts", "get-caller-identity"); err == nil || !strings.Contains(err.Error(), "Could not connect to the endpoint URL") {
		w.t.Errorf("the AWS CLI says: %v", err)
	}
	if now := w.machineKeys(pageMachine, "muster-node"); now != k { // instance metadata keeps what it was told
		w.t.Errorf("the machine has the key %s, and had %s", now.AccessKeyID, k.AccessKeyID)
	}
	for _, step := range []struct {
		name string
		run  func(*iam, *people)
	}{
		{"aws-auth is edited badly and well", (*iam).awsAuth},
		{"a pod asks for the node's credentials", (*iam).podAsks},
	} {
		w.t.Run(step.name, func(t *testing.T) { step.run(w.step(t), p) })
	}
	w.refused("he is told so to the end", w.token(dave, "muster"), http.StatusServiceUnavailable, "unavailable")
	select {
	case <-time.After(outage - time.Since(began)):
	case <-w.t.Context().Done():
	}
	w.t.Logf("in an outage of %s %s", time.Since(began).Round(time.Second), all())
	w.nodeIsReady(nodeAt(pageMachine), time.Second)
	w.muster("up")
	w.refusedWithin(recovery, "of the other it is known again who he is, and that no entry names him", w.token(dave, "muster"), http.StatusForbidden, "no-entry")
	w.becomes(creator, creatorARN)
	w.becomes(k, "system:node:"+nodeAt(pageMachine))
	if out, err := w.aws(w.admin, "sts", "get-caller-identity"); err != nil {
		w.t.Errorf("the AWS CLI afterwards: %s, %v", out, err)
	}
}

// everySecond has somebody and the machine come in once a second, with the token of before and with new ones, until what it returns is
// called: that fails if anybody was refused, or if there were far fewer than one a second.
func (w *iam) everySecond(known string, creator, machine keys) (end func() string) {
	ctx, stop := context.WithCancel(w.t.Context())
	ended, began := make(chan []string, 1), time.Now()
	asked := 0
	ask := func(who, user, token string) string {
		if _, got, why, err := w.review(ctx, token); err != nil || got.Username != user {
			return fmt.Sprintf("%s after %s: user %q, %+v: %v", who, time.Since(began).Round(time.Second), got.Username, why, err)
		}
		return ""
	}
	go func() {
		var wrong []string
		for ctx.Err() == nil {
			mine, err := sign(ctx, creator, "muster")
			nodes, err2 := sign(ctx, machine, "muster")
			said := []string{
				ask("the token of before", creatorARN, known), ask("a new token", creatorARN, mine),
				ask("a new token of the machine", "system:node:"+nodeAt(pageMachine), nodes),
			}
			if _, err3 := w.whoami(ctx, mine); errors.Join(err, err2, err3) != nil {
				said = append(said, fmt.Sprintf("through the API server after %s: %v", time.Since(began).Round(time.Second), errors.Join(err, err2, err3)))
			}
			if ctx.Err() != nil {
				break
			}
			asked++
			wrong = append(wrong, slices.DeleteFunc(said, func(s string) bool { return s == "" })...)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		ended <- wrong
	}()
	w.t.Cleanup(stop)
	return func() string {
		w.t.Helper()
		stop()
		wrong := <-ended
		if len(wrong) > 0 {
			w.t.Errorf("%d times somebody who was known was not let in:\n%s", len(wrong), strings.Join(wrong, "\n"))
		}
		if least := int(time.Since(began).Seconds() / 2); asked < least {
			w.t.Errorf("it was asked %d times only, and not %d", asked, least)
		}
		return fmt.Sprintf("all were let in, each of %d times", asked)
	}
}

// authenticatorKilled kills it. Who has a certificate does not notice, and who comes by IAM comes in again when it has been started again.
func (w *iam) authenticatorKilled(*people) {
	creator := w.creator()
	old := w.kill("authenticator")
	w.mustKubectl("get", "nodes")
	began := time.Now()
	w.eventually("the authenticator is started again", 30*time.Second, func() error {
		if p, ok := w.processes()["authenticator"]; !ok || p.PID == old.PID {
			return errors.New("not yet")
		}
		return nil
	})
	w.becomes(creator, creatorARN)
	w.t.Logf("the creator is let in %s after the authenticator was killed", time.Since(began).Round(time.Millisecond))
	if err := syscall.Kill(w.processes()["authenticator"].PID, 0); err != nil {
		w.t.Errorf("the authenticator is gone: %v", err)
	}
	w.nodeIsReady(nodeAt(pageMachine), 30*time.Second)
}
