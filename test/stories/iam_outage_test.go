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

// outage is how long one lasts at least.
const outage = time.Minute

// bobsEntry lets bob in while it is there.
const bobsEntry = `apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: aws-auth}
data:
  mapUsers: |
    - {userarn: "arn:aws:iam::` + iamAccount + `:user/bob", username: bob}
`

// serviceAway kills the service, in which STS and IAM are, and its guard, so that nothing starts it again. A token that
// was verified before is good, and no other is: an authenticator has no key to check one with. Mappings are the
// cluster's, and count; certificates are good.
func (w *iam) serviceAway(p *people) {
	creator := w.creator()
	p.bob = w.user("bob")
	known := w.token(creator, "muster")
	w.believed(known, creatorARN)
	w.refused("bob, whom no entry names yet", w.token(p.bob, "muster"), http.StatusForbidden, "no-entry")
	w.apply(bobsEntry)
	w.becomes(p.bob, "bob")
	bobs := w.token(p.bob, "muster")
	w.believed(bobs, "bob")
	k := w.machineKeys(pageMachine, "muster-node-muster")
	machines := w.token(k, "muster")
	w.believed(machines, "system:node:"+nodeAt(pageMachine))
	gone := w.user("gone") // a key that ends takes nobody else's token: the kubelet's is not asked for again before the service goes
	w.mustAWS(nil, "iam", "update-access-key", "--user-name", "gone", "--access-key-id", gone.AccessKeyID, "--status", "Inactive")
	for _, name := range []string{"guard", "serve"} {
		w.kill(name)
	}
	w.pause(time.Second) // a token that is signed in the same second is the same token
	began := time.Now()
	all := w.everySecond(map[string]string{known: creatorARN, machines: "system:node:" + nodeAt(pageMachine)}, creator, k)
	fresh := w.token(creator, "muster")
	why := w.refused("a new token is refused with the reason", fresh, http.StatusServiceUnavailable, "unavailable")
	if !strings.Contains(why.Saw, "the identity service does not answer") {
		w.t.Errorf("the authenticator says %+v", why)
	}
	if who, err := w.whoami(w.t.Context(), fresh); err == nil || !unauthorized(err) {
		w.t.Errorf("the API server takes its maker for %q: %v", who.Username, err)
	}
	if _, err := w.aws(w.admin, "sts", "get-caller-identity"); err == nil || !strings.Contains(err.Error(), "Could not connect to the endpoint URL") {
		w.t.Errorf("the AWS CLI says: %v", err)
	}
	if now := w.machineKeys(pageMachine, "muster-node-muster"); now != k { // instance metadata keeps what it was told
		w.t.Errorf("the machine has the key %s, and had %s", now.AccessKeyID, k.AccessKeyID)
	}
	w.mustKubectl("-n", "kube-system", "delete", "configmap", "aws-auth")
	w.refused("bob's entry is removed", bobs, http.StatusForbidden, "no-entry")
	w.apply(bobsEntry)
	w.eventually("bob's entry is back", func() error {
		_, who, why, err := w.review(w.t.Context(), bobs)
		if err == nil && who.Username != "bob" {
			err = fmt.Errorf("user %q, %+v", who.Username, why)
		}
		return err
	})
	w.t.Run("a pod asks for the node's credentials", func(t *testing.T) { w.step(t).podAsks(p) })
	w.pause(outage - time.Since(began))
	w.t.Logf("in an outage of %s %s", time.Since(began).Round(time.Second), all())
	if err := w.readyNode(nodeAt(pageMachine)); err != nil { // it stayed so through the outage
		w.t.Error(err)
	}
	w.muster("up")
	w.verifiedAgain(creator, creatorARN)
	w.becomes(creator, creatorARN)
	w.becomes(k, "system:node:"+nodeAt(pageMachine))
	if out, err := w.aws(w.admin, "sts", "get-caller-identity"); err != nil {
		w.t.Errorf("the AWS CLI afterwards: %s, %v", out, err)
	}
	w.mustKubectl("-n", "kube-system", "delete", "configmap", "aws-auth")
	w.refused("of a new token it is known again that no entry names its maker", w.token(p.bob, "muster"), http.StatusForbidden, "no-entry")
	w.t.Run("aws-auth is edited badly and well", func(t *testing.T) { w.step(t).awsAuth(p) })
}

// pause waits, or until the test is ended.
func (w *iam) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.t.Context().Done():
	}
}

// verifiedAgain waits until the authenticator verifies new tokens again.
func (w *iam) verifiedAgain(k keys, user string) {
	w.t.Helper()
	w.eventually("a new token is verified again", func() error {
		_, who, why, err := w.review(w.t.Context(), w.token(k, "muster"))
		if err == nil && who.Username != user {
			err = fmt.Errorf("user %q, %+v", who.Username, why)
		}
		return err
	})
}

// everySecond shows the authenticator tokens of before and new ones once a second, until what it returns is called:
// that fails if one of before was refused, or a new one was not, or if there were far fewer than one a second.
func (w *iam) everySecond(known map[string]string, makers ...keys) (end func() string) {
	ctx, stop := context.WithCancel(w.t.Context())
	ended, began := make(chan []string, 1), time.Now()
	asked := 0
	ask := func(token, user string, want int) string {
		if status, got, why, err := w.review(ctx, token); err != nil || status != want || got.Username != user {
			return fmt.Sprintf("after %s: %d user %q, not %d %q, %+v: %v", time.Since(began).Round(time.Second), status, got.Username, want, user, why, err)
		}
		return ""
	}
	go func() {
		var wrong []string
		for ctx.Err() == nil {
			var said []string
			for token, user := range known {
				said = append(said, ask(token, user, http.StatusOK))
				if who, err := w.whoami(ctx, token); err != nil || who.Username != user {
					said = append(said, fmt.Sprintf("the API server after %s: user %q, not %q: %v", time.Since(began).Round(time.Second), who.Username, user, err))
				}
			}
			for _, maker := range makers {
				token, err := sign(ctx, maker, "muster")
				if err != nil {
					said = append(said, err.Error())
				}
				said = append(said, ask(token, "", http.StatusServiceUnavailable))
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
			w.t.Errorf("%d answers were not as they should be:\n%s", len(wrong), strings.Join(wrong, "\n"))
		}
		if least := int(time.Since(began).Seconds() / 2); asked < least {
			w.t.Errorf("it was asked %d times only, and not %d", asked, least)
		}
		return fmt.Sprintf("tokens of before were good and new ones refused, each of %d times", asked)
	}
}

// authenticatorKilled kills it. Who has a certificate does not notice, and who comes by IAM comes in again when it has
// been started again.
func (w *iam) authenticatorKilled(*people) {
	creator := w.creator()
	old := w.kill("authenticator")
	w.mustKubectl("get", "nodes")
	began := time.Now()
	w.eventually("the authenticator is started again", func() error {
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
	w.nodeIsReady(nodeAt(pageMachine))
}
