// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"muster.dev/muster/internal/ststoken"
)

// serviceAway kills the service, in which STS and IAM are, and its guard, so that nobody starts it again until somebody does. Whom the
// authenticator knew goes on coming in, with new tokens too; of whom it never heard nobody can tell.
func (w *iam) serviceAway(*people) {
	creator, dave := w.creator(), w.user("dave")
	known := w.token(creator, "muster")
	if _, err := w.whoami(w.t.Context(), known); err != nil {
		w.t.Fatal(err)
	}
	k := w.machineKeys(pageMachine, "muster-node")
	for _, name := range []string{"guard", "serve"} {
		w.kill(name)
	}
	for what, token := range map[string]string{"the token of before": known, "a new token": w.token(creator, "muster")} {
		if _, err := w.whoami(w.t.Context(), token); err != nil {
			w.t.Errorf("who was known a moment ago is not let in by %s: %v", what, err)
		}
	}
	why := w.refused("who was not known is told that nobody can tell", w.token(dave, "muster"), http.StatusServiceUnavailable, "unavailable")
	if !strings.Contains(why.Saw, "the identity service does not answer") {
		w.t.Errorf("the authenticator says %+v", why)
	}
	if _, err := w.aws(w.admin, "sts", "get-caller-identity"); err == nil || !strings.Contains(err.Error(), "Could not connect to the endpoint URL") {
		w.t.Errorf("the AWS CLI says: %v", err)
	}
	if now := w.machineKeys(pageMachine, "muster-node"); now != k { // instance metadata keeps what it was told
		w.t.Errorf("the machine has the key %s, and had %s", now.AccessKeyID, k.AccessKeyID)
	}
	w.muster("up")
	began := time.Now()
	w.becomes(creator, "arn:aws:iam::"+iamAccount+":user/admin")
	w.becomes(k, "system:node:"+nodeAt(pageMachine))
	w.t.Logf("both are let in %s after muster up said that all is well", time.Since(began).Round(time.Millisecond))
	w.refused("of the other it is known again who he is, and that no entry names him", w.token(dave, "muster"), http.StatusForbidden, "no-entry")
	if out, err := w.aws(w.admin, "sts", "get-caller-identity"); err != nil {
		w.t.Errorf("the AWS CLI afterwards: %s, %v", out, err)
	}
}

// floodOf is how many bad tokens come, from senders at once.
const (
	floodOf = 20_000
	senders = 48
)

// flood sends bad tokens as fast as it can, nearly all of them to the authenticator itself, since the API server would slow them down.
// Meanwhile the creator comes in again and again, each time with a new token, through the API server.
func (w *iam) flood(*people) {
	creator := w.creator()
	if _, err := w.comeIn(w.t.Context(), creator); err != nil {
		w.t.Fatal(err)
	}
	calm := w.comings(creator, func(n int) bool { return n < 100 })
	bad := w.badTokens(creator)
	answers, ended := make(chan map[int]int, 1), atomic.Bool{}
	began := time.Now()
	go func() {
		defer ended.Store(true)
		answers <- w.send(bad)
	}()
	busy := w.comings(creator, func(int) bool { return !ended.Load() })
	counts, took := <-answers, time.Since(began)
	w.t.Logf("%d bad tokens in %s, %.0f/s, answered %v", floodOf, took.Round(time.Millisecond), floodOf/took.Seconds(), counts)
	w.t.Logf("a good new token through the API server: before %s; meanwhile %s", spread(calm), spread(busy))
	if counts[http.StatusOK] > 0 || counts[0] > 0 {
		w.t.Errorf("of the bad tokens %d were good, and %d were not answered", counts[http.StatusOK], counts[0])
	}
	if len(busy) == 0 {
		w.t.Error("nobody came in meanwhile, so nothing is shown")
	}
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

func (w *iam) comings(k keys, more func(int) bool) []time.Duration {
	w.t.Helper()
	var all []time.Duration
	for n := 0; more(n); n++ {
		took, err := w.comeIn(w.t.Context(), k)
		if err != nil {
			w.t.Errorf("a good token was refused after %s: %v", took, err)
			return all
		}
		all = append(all, took)
	}
	return all
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "nothing"
	}
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, most %s of %d", at(0.5), at(0.99), at(1), len(all))
}

// badTokens are of four kinds, each of them another one each time: noise, a key that there is not, a known key's id with another secret,
// and the right key for another cluster.
func (w *iam) badTokens(good keys) []string {
	w.t.Helper()
	tokens := make([]string, 0, floodOf)
	for n := range floodOf {
		switch n % 4 {
		case 0:
			tokens = append(tokens, ststoken.Prefix+rand.Text()+rand.Text())
		case 1:
			tokens = append(tokens, w.token(keys{AccessKeyID: "AKIA" + rand.Text()[:16], SecretAccessKey: rand.Text()}, "muster"))
		case 2:
			tokens = append(tokens, w.token(keys{AccessKeyID: good.AccessKeyID, SecretAccessKey: rand.Text()}, "muster"))
		default:
			tokens = append(tokens, w.token(good, "other-"+strings.ToLower(rand.Text()[:8])))
		}
	}
	return tokens
}

// send tells how many were answered in which way; 0 is for those that were not. One in fifty goes through the API server.
func (w *iam) send(tokens []string) map[int]int {
	ctx := w.t.Context()
	each := make([]map[int]int, senders)
	var group sync.WaitGroup
	for sender := range senders {
		each[sender] = map[int]int{}
		group.Go(func() {
			for n := sender; n < len(tokens); n += senders {
				status := 0
				if n%50 == 0 {
					if _, err := w.whoami(ctx, tokens[n]); err == nil {
						status = http.StatusOK
					} else if strings.Contains(err.Error(), "Unauthorized") || strings.Contains(err.Error(), "provide credentials") {
						status = http.StatusUnauthorized
					}
				} else if got, _, _, err := w.review(ctx, tokens[n]); err == nil {
					status = got
				}
				each[sender][status]++
			}
		})
	}
	group.Wait()
	all := map[int]int{}
	for _, counts := range each {
		for status := range maps.Keys(counts) {
			all[status] += counts[status]
		}
	}
	return all
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
	w.becomes(creator, "arn:aws:iam::"+iamAccount+":user/admin")
	w.t.Logf("the creator is let in %s after the authenticator was killed", time.Since(began).Round(time.Millisecond))
	if err := syscall.Kill(w.processes()["authenticator"].PID, 0); err != nil {
		w.t.Errorf("the authenticator is gone: %v", err)
	}
	w.nodeIsReady(nodeAt(pageMachine), 30*time.Second)
}
