// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// asker gives credentials that last for six hours, unless it is told to refuse.
type asker struct {
	mu    sync.Mutex
	err   error
	asked int
	now   func() time.Time
}

func (a *asker) Ask(_ context.Context, token string) (Credentials, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.err != nil {
		return Credentials{}, a.err
	}
	return Credentials{
		AccessKeyID: fmt.Sprintf("ASIA%d", a.asked), SecretAccessKey: "secret", Token: "session", AccountID: "000000000000", Expiration: a.now().Add(6 * time.Hour),
	}, nil
}

func (a *asker) say(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *asker) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// pods are those behind two addresses.
type pods struct{ err error }

func (p pods) Pod(address netip.Addr) (string, error) {
	return map[string]string{"10.0.0.1": "uid-web", "10.0.0.2": "uid-db"}[address.String()], p.err
}

type world struct {
	*Server

	ask *asker
	mu  sync.Mutex
	at  time.Time
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func newWorld(t testing.TB, p PodOf) *world {
	t.Helper()
	w := &world{at: time.Unix(1_790_000_000, 0)}
	w.ask = &asker{now: w.now}
	var err error
	w.Server, err = New(Config{
		Ask: w.ask, Pods: p, Own: func(a netip.Addr) bool { return a.String() == AddressIPv4 }, Log: slog.New(slog.DiscardHandler), Now: w.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// token makes a token that nobody signed, good for a day.
func (w *world) token(uid string, change ...func(map[string]any)) string {
	said := map[string]any{"aud": []string{audience}, "exp": w.now().Add(24 * time.Hour).Unix(), "kubernetes.io": map[string]any{"pod": map[string]any{"uid": uid}}}
	for _, c := range change {
		c(said)
	}
	raw, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte("{}")) + "." + encode(raw) + "." + encode([]byte("signature"))
}

func (w *world) get(from, token string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://"+AddressIPv4+CredentialsPath, http.NoBody)
	r.RemoteAddr = from + ":40000"
	if strings.Contains(from, ":") {
		r.RemoteAddr = "[" + from + "]:40000"
	}
	r.Header.Set("Authorization", token)
	for _, c := range change {
		c(r)
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

func TestCredentials(t *testing.T) {
	w := newWorld(t, pods{})
	got := w.get("10.0.0.1", w.token("uid-web"))
	const want = `{"AccessKeyId":"ASIA1","SecretAccessKey":"secret","Token":"session","AccountId":"000000000000","Expiration":"2026-09-21T19:33:20Z"}`
	expires := w.now().Add(6 * time.Hour).UTC().Format(time.RFC3339)
	if got.Code != http.StatusOK || strings.TrimSpace(got.Body.String()) != strings.Replace(want, "2026-09-21T19:33:20Z", expires, 1) || got.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s\nwant %s until %s", got.Code, got.Body, want, expires)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		from   string
		token  func(*world) string
		change func(*http.Request)
		pods   pods
		status int
		has    string
	}{
		"another host":    {change: func(r *http.Request) { r.Host = "metadata.example" }, status: 403, has: "Host"},
		"another address": {change: func(r *http.Request) { r.Host = "169.254.169.254" }, status: 403, has: "Host"},
		"another port":    {change: func(r *http.Request) { r.Host = AddressIPv4 + ":8080" }, status: 403, has: "Host"},
		"another path":    {change: func(r *http.Request) { r.URL.Path = "/v1/credentials/x" }, status: 404},
		"another method":  {change: func(r *http.Request) { r.Method = http.MethodPost }, status: 405},
		"no token":        {change: func(r *http.Request) { r.Header.Del("Authorization") }, status: 400, has: "Authorization"},
		"two tokens":      {change: func(r *http.Request) { r.Header.Add("Authorization", "x") }, status: 400, has: "Authorization"},
		"a bearer's":      {token: func(w *world) string { return "Bearer " + w.token("uid-web") }, status: 400, has: "JSON Web Token"},
		"not a token":     {token: func(*world) string { return "a.b" }, status: 400, has: "JSON Web Token"},
		"too long":        {token: func(*world) string { return strings.Repeat("a", maxToken+1) }, status: 400, has: "too long"},
		"another audience": {token: func(w *world) string {
			return w.token("uid-web", func(c map[string]any) { c["aud"] = []string{"sts.amazonaws.com"} })
		}, status: 400, has: "audience"},
		"no pod":                   {token: func(w *world) string { return w.token("") }, status: 400, has: "bound to no pod"},
		"expired":                  {token: func(w *world) string { return w.token("uid-web", func(c map[string]any) { c["exp"] = w.now().Unix() }) }, status: 400, has: "ExpiredTokenException"},
		"another pod's":            {from: "10.0.0.2", status: 403, has: "of another pod"},
		"an address of nobody's":   {from: "10.0.0.3", status: 403, has: "of another pod"},
		"addresses are not known":  {pods: pods{errors.New("broken")}, status: 500},
		"the machine's own may":    {from: AddressIPv4, status: 200},
		"the address of that kind": {change: func(r *http.Request) { r.Host = "[fd00:ec2::23]" }, status: 200},
		"with the port":            {change: func(r *http.Request) { r.Host = AddressIPv4 + ":80" }, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.pods)
			token := w.token("uid-web")
			if c.token != nil {
				token = c.token(w)
			}
			if c.from == "" {
				c.from = "10.0.0.1"
			}
			if c.change == nil {
				c.change = func(*http.Request) {}
			}
			got := w.get(c.from, token, c.change)
			if got.Code != c.status || !strings.Contains(got.Body.String(), c.has) {
				t.Errorf("%d %s; want %d with %q", got.Code, got.Body, c.status, c.has)
			}
			if asked := w.ask.count(); asked > 0 != (c.status == 200) {
				t.Errorf("EKS Auth was asked %d times", asked)
			}
		})
	}
}

// A refusal of EKS Auth holds within a second, whatever is remembered.
func TestRevoked(t *testing.T) {
	w := newWorld(t, pods{})
	token := w.token("uid-web")
	w.get("10.0.0.1", token)
	w.ask.say(&Refused{404, "ResourceNotFoundException", "No association found"})
	if got := w.get("10.0.0.1", token); got.Code != 200 || w.ask.count() != 1 {
		t.Errorf("at once: %d %s, asked %d times", got.Code, got.Body, w.ask.count())
	}
	w.move(fresh)
	if got := w.get("10.0.0.1", token); got.Code != 404 || !strings.Contains(got.Body.String(), `"code":"ResourceNotFoundException","message":"No association found"`) {
		t.Errorf("after a second: %d %s", got.Code, got.Body)
	}
	w.ask.say(errors.New("away"))
	if got := w.get("10.0.0.1", token); got.Code != 503 {
		t.Errorf("what was refused is remembered: %d %s", got.Code, got.Body)
	}
	w.ask.say(nil)
	if got := w.get("10.0.0.1", token); got.Code != 200 || !strings.Contains(got.Body.String(), "ASIA4") {
		t.Errorf("a new association: %d %s", got.Code, got.Body)
	}
}

// While EKS Auth is away the known credentials are handed out until they end.
func TestOutage(t *testing.T) {
	w := newWorld(t, pods{})
	token := w.token("uid-web")
	w.get("10.0.0.1", token)
	w.ask.say(errors.New("away"))
	w.move(6*time.Hour - time.Second)
	if got := w.get("10.0.0.1", token); got.Code != 200 || !strings.Contains(got.Body.String(), "ASIA1") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	w.move(time.Second)
	if got := w.get("10.0.0.1", token); got.Code != 503 || strings.Contains(got.Body.String(), "away") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// Credentials are got anew when half their life is over, without a pod that asks, as long as the token is good.
func TestSweep(t *testing.T) {
	w := newWorld(t, pods{})
	w.get("10.0.0.1", w.token("uid-web"))
	w.get("10.0.0.2", w.token("uid-db", func(c map[string]any) { c["exp"] = w.now().Add(2 * time.Hour).Unix() }))
	w.cache.sweep(t.Context())
	if got := w.ask.count(); got != 2 {
		t.Errorf("asked %d times", got)
	}
	w.move(3 * time.Hour)
	w.cache.sweep(t.Context())
	if got := w.ask.count(); got != 3 || w.cache.entries.Len() != 1 {
		t.Errorf("asked %d times, %d remembered: want one new one, and the ended token forgotten", got, w.cache.entries.Len())
	}
	w.ask.say(&Refused{400, "InvalidTokenException", "gone"})
	w.move(3 * time.Hour)
	w.cache.sweep(t.Context())
	if w.cache.entries.Len() != 0 {
		t.Error("a pod that is gone is remembered")
	}
}

func TestFlood(t *testing.T) {
	w := newWorld(t, pods{})
	w.ask.say(&Refused{400, "InvalidTokenException", "no"})
	refused := 0
	for i := range 5000 {
		token := w.token("uid-web", func(c map[string]any) { c["jti"] = i })
		if w.get("10.0.0.1", token).Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if asked := w.ask.count(); asked != questionsBurst || refused != 5000-questionsBurst || w.cache.entries.Len() != 0 {
		t.Errorf("asked %d times, refused %d, %d remembered", asked, refused, w.cache.entries.Len())
	}
	w.ask.say(nil)
	if got := w.get("10.0.0.2", w.token("uid-db")); got.Code != 200 {
		t.Errorf("another pod: %d", got.Code)
	}
}

func TestServe(t *testing.T) {
	w := newWorld(t, pods{})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(ctx, listener) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+HealthPath, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = AddressIPv4
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Error(response.Status)
	}
	probe := func() error {
		return Probe(t.Context(), func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
		})
	}
	if err := probe(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := probe(); err == nil {
		t.Error("what has ended answers")
	}
}

// BenchmarkCached is a pod that asks again for what is known: 20,000 a second are wanted.
func BenchmarkCached(b *testing.B) {
	w := newWorld(b, pods{})
	token := w.token("uid-web")
	r := httptest.NewRequest(http.MethodGet, "http://"+AddressIPv4+CredentialsPath, http.NoBody)
	r.RemoteAddr = "10.0.0.1:40000"
	r.Header.Set("Authorization", token)
	for b.Loop() {
		answer := httptest.NewRecorder()
		if w.ServeHTTP(answer, r); answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}

// BenchmarkOverTCP is the same over connections that are kept, client and server on the same processors.
func BenchmarkOverTCP(b *testing.B) {
	w := newWorld(b, pods{})
	w.config.Own = func(netip.Addr) bool { return true }
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(ctx, listener) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	request := "GET " + CredentialsPath + " HTTP/1.1\r\nHost: " + AddressIPv4 + "\r\nAuthorization: " + w.token("uid-web") + "\r\n\r\n"
	b.ResetTimer()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp4", listener.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = connection.Close() }()
		buffer := make([]byte, 4096)
		for pb.Next() {
			if _, err := connection.Write([]byte(request)); err != nil {
				b.Error(err)
				return
			}
			n, err := connection.Read(buffer)
			if err != nil || !strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 200") {
				b.Error(err, string(buffer[:n]))
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}
