// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/ststoken"
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

// floodOf is how many bad tokens come at least, from senders at once; they go on until those who come in meanwhile are done.
const (
	floodOf = 20_000
	senders = 48
	// meanwhile is how often somebody comes in while they come.
	meanwhile = 100
)

// A flood may make the good ones this much slower. It is about the one machine on which all of it runs, senders too: what is promised is
// that nobody waits behind bad tokens, of which there are seconds' worth at any moment.
const (
	slowerBy   = 10
	slowerThan = 250 * time.Millisecond
)

// flood sends bad tokens as fast as it can, nearly all of them to the authenticator itself, since the API server would slow them down.
// Meanwhile the creator comes in again and again, each time with a new token, through the API server; so does somebody whose key was made
// in the middle of it.
func (w *iam) flood(*people) {
	creator := w.creator()
	w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: aws-auth}, data: {mapAccounts: '["` + iamAccount + `"]'}}`)
	w.becomes(w.user("early"), "arn:aws:iam::"+iamAccount+":user/early") // of this on, the whole account is let in
	firstCalm := w.firstComing("calm")
	calm := w.comings(creator, meanwhile)
	bad := w.badTokens(creator)
	answers := make(chan map[int]int, 1)
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	began := time.Now()
	go func() { answers <- w.send(ctx, creator, bad) }()
	busy := w.comings(creator, meanwhile)
	firstBusy := w.firstComing("busy")
	stop()
	counts := <-answers
	took, sent := time.Since(began), 0
	for _, n := range counts {
		sent += n
	}
	w.t.Logf("%d bad tokens in %s, %.0f/s, answered %v", sent, took.Round(time.Millisecond), float64(sent)/took.Seconds(), counts)
	w.t.Logf("a good new token through the API server: before %s; meanwhile %s", spread(calm), spread(busy))
	w.t.Logf("the first token of a new key: before %s; meanwhile %s", firstCalm, firstBusy)
	if counts[http.StatusOK] > 0 || counts[0] > 0 || sent < floodOf {
		w.t.Errorf("of %d bad tokens %d were good, and %d were not answered", sent, counts[http.StatusOK], counts[0])
	}
	for what, one := range map[string]struct{ before, now time.Duration }{
		"a good new token (99th percentile)": {share(calm, 0.99), share(busy, 0.99)},
		"the first token of a new key":       {max(firstCalm, share(calm, 0.99)), firstBusy},
	} {
		if most := slowerBy*one.before + slowerThan; one.now > most {
			w.t.Errorf("%s takes %s meanwhile, and %s without bad tokens: more than %s", what, one.now, one.before, most)
		}
	}
	w.mustKubectl("-n", "kube-system", "delete", "configmap", "aws-auth")
}

// firstComing makes a user, and tells how long it takes until he is let in.
func (w *iam) firstComing(name string) time.Duration {
	w.t.Helper()
	took, err := w.comeIn(w.t.Context(), w.user(name))
	if err != nil {
		w.t.Errorf("the first token of a new key was refused after %s: %v", took, err)
	}
	return took
}

// comeIn comes in with a new token.
func (w *iam) comeIn(ctx context.Context, k keys) (time.Duration, error) {
	token, err := sign(ctx, k, "muster")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = w.whoami(ctx, token)
	return time.Since(began), err
}

// comings are all good: those that are refused are none.
func (w *iam) comings(k keys, number int) []time.Duration {
	w.t.Helper()
	all := make([]time.Duration, 0, number)
	for range number {
		took, err := w.comeIn(w.t.Context(), k)
		if err != nil {
			w.t.Fatalf("a good token was refused after %s: %v", took, err)
		}
		all = append(all, took)
	}
	slices.Sort(all)
	return all
}

// share is how long at most that share of them took, which are in order.
func share(all []time.Duration, of float64) time.Duration {
	return all[int(of*float64(len(all)-1))].Round(10 * time.Microsecond)
}

func spread(all []time.Duration) string {
	return fmt.Sprintf("p50 %s, p99 %s, most %s of %d", share(all, 0.5), share(all, 0.99), share(all, 1), len(all))
}

func (w *iam) badTokens(good keys) []string {
	w.t.Helper()
	tokens := make([]string, 0, floodOf)
	for n := range floodOf {
		token, err := badToken(w.t.Context(), n, good)
		if err != nil {
			w.t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// badToken is of one of four kinds, each of them another one each time: noise, a key that there is not, a known key's id with another
// secret, and the right key for another cluster.
func badToken(ctx context.Context, n int, good keys) (string, error) {
	switch n % 4 {
	case 0:
		return ststoken.Prefix + rand.Text() + rand.Text(), nil
	case 1:
		return sign(ctx, keys{AccessKeyID: "AKIA" + rand.Text()[:16], SecretAccessKey: rand.Text()}, "muster")
	case 2:
		return sign(ctx, keys{AccessKeyID: good.AccessKeyID, SecretAccessKey: rand.Text()}, "muster")
	default:
		return sign(ctx, good, "other-"+strings.ToLower(rand.Text()[:8]))
	}
}

// send sends all tokens, and others until ctx is done. It tells how many were answered in which way; 0 is for those that were not. One in
// fifty goes through the API server.
func (w *iam) send(until context.Context, good keys, tokens []string) map[int]int {
	ctx := w.t.Context()
	each := make([]map[int]int, senders)
	var group sync.WaitGroup
	for sender := range senders {
		each[sender] = map[int]int{}
		group.Go(func() {
			for n := sender; n < len(tokens) || until.Err() == nil; n += senders {
				var token string
				if n < len(tokens) {
					token = tokens[n]
				} else if more, err := badToken(ctx, n, good); err == nil {
					token = more
				}
				each[sender][w.answerTo(ctx, token, n%50 == 0)]++
			}
		})
	}
	group.Wait()
	all := map[int]int{}
	for _, counts := range each {
		for status, n := range counts {
			all[status] += n
		}
	}
	return all
}

// answerTo is the status by which a bad token is answered; 0 if it is not.
func (w *iam) answerTo(ctx context.Context, token string, byServer bool) int {
	if !byServer {
		status, _, _, err := w.review(ctx, token)
		if err != nil {
			return 0
		}
		return status
	}
	_, err := w.whoami(ctx, token)
	switch {
	case err == nil:
		return http.StatusOK
	case unauthorized(err):
		return http.StatusUnauthorized
	default:
		return 0
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
