// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/test/plane"
)

const (
	// floodRate is how many bad tokens are sent each second, as long as somebody comes in meanwhile, and floodLeast how
	// many must be answered: the cluster, who sends and who comes in share the CPUs, perhaps with others.
	floodRate, floodLeast = 10_000, 3_000
	// floodOf is how many there are. It is more than anybody remembers, so that each is a new one when it comes again.
	floodOf = 20_000
	// pipes are the connections they come on, and burst is how often each sends.
	pipes, burst = 8, 10 * time.Millisecond
	// aside is how often one of them goes through the API server, which would slow all of them down.
	aside = 20 * time.Millisecond
	// meanwhile is how often somebody comes in while they come.
	meanwhile = 200
)

// A flood may make the good ones this much slower. It is about the one machine on which all of it runs, senders too:
// the promise is that nobody waits behind bad tokens, though seconds' worth of them wait at any moment.
const (
	slowerBy   = 10
	slowerThan = 250 * time.Millisecond
	floodWait  = 5 * time.Second // is longer than anybody may wait
	// floodMemory is how much larger the authenticator may become. The tokens alone that are sent meanwhile have more.
	floodMemory = 48 << 20
)

// flood sends ten thousand bad tokens a second to the authenticator itself. Meanwhile the creator comes in again and
// again, each time with a new token, through the API server; so does somebody whose key was made in the middle of it.
func (w *iam) flood(*people) {
	creator := w.creator()
	w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: aws-auth}, data: {mapAccounts: '["` + iamAccount + `"]'}}`)
	w.becomes(w.user("early"), "arn:aws:iam::"+iamAccount+":user/early") // of this on, the whole account is let in
	door := w.door()
	firstCalm := w.firstComing(door, "calm")
	calm := w.comings(door, creator, meanwhile)
	bad := w.badTokens(creator)
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	flooded := w.send(ctx, bad)
	select {
	case <-time.After(time.Second): // as much memory is taken as is remembered at most
	case <-ctx.Done():
	}
	before := w.memory()
	busy := w.comings(door, creator, meanwhile)
	firstBusy := w.firstComing(door, "busy")
	after := w.memory()
	stop()
	f := <-flooded
	rate := float64(f.sent()) / f.took.Seconds()
	w.t.Logf("%d bad tokens in %s, %.0f/s, answered %v, and through the API server %v", f.sent(), f.took.Round(time.Millisecond), rate, f.answered, f.aside)
	w.t.Logf("a good new token through the API server: before %s; meanwhile %s", spread(calm), spread(busy))
	w.t.Logf("the first token of a new key: before %s; meanwhile %s", firstCalm, firstBusy)
	w.t.Logf("the authenticator has %d MiB after a second, and %d in the end", before>>20, after>>20)
	switch {
	case f.err != nil:
		w.t.Errorf("bad tokens could not be sent: %v", f.err)
	case f.answered[http.StatusOK] > 0 || f.aside[http.StatusOK] > 0 || f.aside[0] > 0:
		w.t.Errorf("bad tokens were good, or were not answered: %v, %v", f.answered, f.aside)
	case rate < floodLeast:
		w.t.Errorf("it is no flood: %.0f/s, and not %d", rate, floodLeast)
	}
	for what, one := range map[string]struct{ before, now time.Duration }{
		"a good new token (99th percentile)": {share(calm, 0.99), share(busy, 0.99)},
		"the first token of a new key":       {max(firstCalm, share(calm, 0.99)), firstBusy},
	} {
		if most := slowerBy*one.before + slowerThan; one.now > most {
			w.t.Errorf("%s takes %s meanwhile, and %s without bad tokens: more than %s", what, one.now, one.before, most)
		}
	}
	if slowest := share(busy, 1); slowest > floodWait {
		w.t.Errorf("somebody waited for %s", slowest)
	}
	if after-before > floodMemory {
		w.t.Errorf("the authenticator has %d MiB more than a second after it began", (after-before)>>20)
	}
	w.mustKubectl("-n", "kube-system", "delete", "configmap", "aws-auth")
}

// memory is what the authenticator has in memory, in bytes.
func (w *iam) memory() int64 {
	w.t.Helper()
	usage, err := plane.UsageOf(w.processes()["authenticator"].PID)
	if err != nil {
		w.t.Fatal(err)
	}
	return usage.Resident
}

// door is a way to the API server that good ones have for themselves. It ends an HTTP/2 connection with each 401, and a
// client to which that happens twice with one request pauses for a second before the third: whoever shares a connection
// with bad tokens waits for that.
func (w *iam) door() http.RoundTripper {
	w.t.Helper()
	config, err := rest.TLSConfigFor(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	own := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	w.t.Cleanup(own.CloseIdleConnections)
	return own
}

// firstComing makes a user, and tells how long it takes until he is let in.
func (w *iam) firstComing(door http.RoundTripper, name string) time.Duration {
	w.t.Helper()
	took, err := w.comeIn(w.t.Context(), door, w.user(name))
	if err != nil {
		w.t.Errorf("the first token of a new key was refused after %s: %v", took, err)
	}
	return took
}

// comeIn comes in with a new token.
func (w *iam) comeIn(ctx context.Context, door http.RoundTripper, k keys) (time.Duration, error) {
	token, err := sign(ctx, k, "muster")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = w.whoamiBy(ctx, &http.Client{Transport: transport.NewBearerAuthRoundTripper(token, door)})
	return time.Since(began), err
}

// comings are all good: those that are refused are none.
func (w *iam) comings(door http.RoundTripper, k keys, number int) []time.Duration {
	w.t.Helper()
	all := make([]time.Duration, 0, number)
	for range number {
		took, err := w.comeIn(w.t.Context(), door, k)
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

// badToken is of one of four kinds, each of them another one each time: noise, a key that there is not, a known key's
// id with another secret, and the right key for another cluster.
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

// flooded is what became of a flood: how many were answered in which way, and those through the API server; 0 is for
// those that were not.
type flooded struct {
	answered, aside map[int]int
	took            time.Duration
	err             error
}

func (f flooded) sent() (n int) {
	for _, of := range f.answered {
		n += of
	}
	return n
}

// send sends tokens again and again until ctx is done, and tells then what became of them.
func (w *iam) send(ctx context.Context, tokens []string) <-chan flooded {
	w.t.Helper()
	all := make([]*pipe, pipes)
	for n := range all {
		var err error
		if all[n], err = w.newPipe(ctx, n, tokens); err != nil {
			w.t.Fatal(err)
		}
	}
	began, ended := time.Now(), make(chan flooded, 1)
	go func() {
		f := flooded{answered: map[int]int{}, aside: map[int]int{}}
		var group sync.WaitGroup
		for _, p := range all {
			group.Go(func() { p.send(ctx) })
			group.Go(p.read)
		}
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				f.aside[w.answerTo(context.WithoutCancel(ctx), tokens[n%len(tokens)])]++
				select {
				case <-time.After(aside):
				case <-ctx.Done():
				}
			}
		})
		group.Wait()
		f.took = time.Since(began)
		for _, p := range all {
			f.err = errors.Join(f.err, p.err)
			for status, n := range p.answered {
				f.answered[status] += n
			}
		}
		ended <- f
	}()
	return ended
}

// pipe is a connection to the authenticator on which requests are sent without waiting for answers (RFC 9112, 9.3.2):
// what one costs who sends is left to those who come in meanwhile.
type pipe struct {
	conn     *tls.Conn
	requests [][]byte
	sent     chan int // how many were written at once
	answered map[int]int
	err      error
}

// newPipe connects. Of the tokens every so manieth is for one pipe.
func (w *iam) newPipe(ctx context.Context, n int, tokens []string) (*pipe, error) {
	to, err := url.Parse(w.reviews)
	if err != nil {
		return nil, err
	}
	own, ok := w.client.Transport.(*http.Transport)
	if !ok {
		return nil, errors.New("the authenticator's callers have no transport of Go's")
	}
	config := own.TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	dialer := tls.Dialer{Config: config}
	c, err := dialer.DialContext(ctx, "tcp", to.Host)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*tls.Conn)
	if !ok {
		return nil, errors.New("a connection by TLS is none")
	}
	p := &pipe{conn: conn, sent: make(chan int, 1), answered: map[int]int{}}
	for i := n; i < len(tokens); i += pipes {
		body := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"` + tokens[i] + `"}}`
		p.requests = append(p.requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", to.Path, to.Host, len(body), body))
	}
	return p, nil
}

// send writes requests in bursts until ctx is done.
func (p *pipe) send(ctx context.Context) {
	defer close(p.sent)
	tick := time.NewTicker(burst)
	defer tick.Stop()
	began, next := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var out bytes.Buffer
		number := min(int(time.Since(began).Seconds()*floodRate/pipes)-next, floodRate/pipes/10) // late tokens are not made up for at once
		for range number {
			out.Write(p.requests[next%len(p.requests)])
			next++
		}
		if _, err := p.conn.Write(out.Bytes()); err != nil {
			p.err = err
			return
		}
		p.sent <- number
	}
}

// read reads as many answers as were asked for.
func (p *pipe) read() {
	defer func() { _ = p.conn.Close() }() // all was answered
	in := bufio.NewReader(p.conn)
	for number := range p.sent {
		for range number {
			status, err := readAnswer(in)
			if err != nil {
				p.err = fmt.Errorf("reading an answer: %w", err)
				for range p.sent { // nobody waits for the reader
				}
				return
			}
			p.answered[status]++
		}
	}
}

// readAnswer reads an answer and returns its status.
func readAnswer(in *bufio.Reader) (status int, err error) {
	length := 0
	for first := true; ; first = false {
		raw, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line := strings.TrimSpace(string(raw))
		name, value, _ := strings.Cut(line, ":")
		switch {
		case first:
			_, code, _ := strings.Cut(line, " ")
			if status, err = strconv.Atoi(code[:min(3, len(code))]); err != nil {
				return 0, fmt.Errorf("the answer begins %q: %w", line, err)
			}
		case line == "":
			_, err := in.Discard(length)
			return status, err
		case strings.EqualFold(name, "Content-Length"):
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return 0, err
			}
		}
	}
}

// answerTo is the status by which the API server answers a bad token; 0 if it does not.
func (w *iam) answerTo(ctx context.Context, token string) int {
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
