// SPDX-License-Identifier: Apache-2.0

package tokensigner

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/socketdir"
)

const url = "https://127.93.14.201/id/0123456789ABCDEF0123456789ABCDEF"

// world is a signer that runs, and its API server's connection to it, made as kube-apiserver makes it.
type world struct {
	t       *testing.T
	cluster component.Config
	config  Config
	client  externaljwt.ExternalJWTSignerClient
	end     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, tokenkeys.ES256)
}

// newWorldOf is that of a cluster whose keys have an algorithm.
func newWorldOf(t *testing.T, algorithm tokenkeys.Algorithm) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "ts-") //nolint:usetesting // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{t: t, cluster: newCluster(t, filepath.Join(dir, "c"))}
	w.config = Config{
		Issuer: url, Keys: w.cluster.Dir.TokenSigner(), LegacyKey: filepath.Join(dir, "legacy.pem"), Socket: filepath.Join(dir, "s.sock"),
		Address:    w.cluster.Places.TokenSigner.Listen.String(),
		Credential: w.cluster.Credential(component.TokenSigner), ClientCA: w.cluster.Authority(authority.FrontProxy), Client: component.UserAccount,
		Log: slog.New(slog.DiscardHandler),
	}
	if err := os.Mkdir(w.config.Keys, 0o700); err != nil {
		t.Fatal(err)
	}
	legacy, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(legacy)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.config.LegacyKey, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	ring, err := tokenkeys.New(time.Now().Add(-7*24*time.Hour), algorithm, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w.write(ring)
	connection, err := grpc.NewClient("passthrough:///"+w.config.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	w.client = externaljwt.NewExternalJWTSignerClient(connection)
	w.start()
	t.Cleanup(func() { w.end() })
	return w
}

// start runs the signer until end is called.
func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // it ends before the test does, and after its context
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, w.config) }()
	w.end = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		w.end = func() {}
	}
}

// file is where the signer keeps its keys.
func (w *world) file() string { return filepath.Join(w.config.Keys, "keys.json") }

func (w *world) write(r tokenkeys.Ring) {
	w.t.Helper()
	if err := tokenkeys.Write(w.file(), r); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ring() tokenkeys.Ring {
	w.t.Helper()
	r, err := tokenkeys.Read(w.file())
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// claims returns the claims of a pod's token, with some changed. A claim that is nil is left out.
func claims(change map[string]any) string {
	now := time.Now().Unix()
	all := map[string]any{"iss": url, "sub": "system:serviceaccount:a:app", "aud": []string{"sts.amazonaws.com"}, "iat": now, "nbf": now, "exp": now + 3600}
	for name, value := range change {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// sign makes a token as kube-apiserver does.
func (w *world) sign(text string) (string, error) {
	signed, err := w.client.Sign(w.t.Context(), &externaljwt.SignJWTRequest{Claims: text})
	if err != nil {
		return "", err
	}
	return signed.GetHeader() + "." + text + "." + signed.GetSignature(), nil
}

// verified reports whether STS takes a token by what the issuer publishes.
func (w *world) verified(text string) error {
	w.t.Helper()
	own, err := issuer.Parse(url)
	if err != nil {
		w.t.Fatal(err)
	}
	documents, err := tokenkeys.Documents(own, w.ring(), time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	keys, err := webidentity.ParseKeys(documents.Keys)
	if err != nil {
		w.t.Fatal(err)
	}
	token, err := webidentity.Read(text)
	if err != nil {
		return err
	}
	_, err = token.Verify(keys, time.Now())
	return err
}

// TestSign signs in clusters of both kinds, before and after a rotation. The header names the algorithm.
func TestSign(t *testing.T) {
	for _, algorithm := range []tokenkeys.Algorithm{tokenkeys.RS256, tokenkeys.ES256} {
		t.Run(string(algorithm), func(t *testing.T) { signs(t, newWorldOf(t, algorithm), algorithm) })
	}
}

func signs(t *testing.T, w *world, algorithm tokenkeys.Algorithm) {
	t.Helper()
	old, err := w.sign(claims(nil))
	if err != nil || w.verified(old) != nil {
		t.Fatalf("%v, %v", err, w.verified(old))
	}
	next, err := w.ring().Rotate(time.Now().Add(-time.Minute), 0, rand.Reader) // whose time has come
	if err != nil {
		t.Fatal(err)
	}
	w.write(next)
	added, err := w.sign(claims(nil))
	if err != nil || w.verified(added) != nil || w.verified(old) != nil {
		t.Fatalf("after a rotation: %v, %v, %v", err, w.verified(added), w.verified(old))
	}
	if head, _, _ := strings.Cut(old, "."); strings.HasPrefix(added, head) {
		t.Error("the old key signs still")
	}
	for _, text := range []string{old, added} {
		head, _, _ := strings.Cut(text, ".")
		if raw, err := base64.RawURLEncoding.DecodeString(head); err != nil || !strings.HasPrefix(string(raw), `{"alg":"`+string(algorithm)+`",`) {
			t.Errorf("header %s, %v", raw, err)
		}
	}
	if err := os.WriteFile(w.file(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sign(claims(nil)); status.Code(err) != codes.Unavailable {
		t.Errorf("with a damaged file: %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	for name, tc := range map[string]struct{ claims, want string }{
		"of another issuer":      {claims(map[string]any{"iss": "https://127.93.14.201/id/FEDCBA9876543210FEDCBA9876543210"}), "signs for"},
		"of no issuer":           {claims(map[string]any{"iss": nil}), "signs for"},
		"by another spelling":    {claims(map[string]any{"iss": nil, "ISS": url}), "signs for"},
		"of tokens in Secrets":   {claims(map[string]any{"iss": "kubernetes/serviceaccount"}), "signs for"},
		"without an end":         {claims(map[string]any{"exp": nil}), "exp is not"},
		"that never end":         {claims(map[string]any{"exp": json.RawMessage("null")}), "exp is not"},
		"that end in text":       {claims(map[string]any{"exp": "never"}), "exp is not"},
		"that hardly end":        {claims(map[string]any{"exp": now.Add(91 * 24 * time.Hour).Unix()}), "exp is more than"},
		"that are padded":        {claims(map[string]any{"a": strings.Repeat("x", 1)}) + "=", "base64"},
		"that are no object":     {base64.RawURLEncoding.EncodeToString([]byte(`["iss"]`)), "JSON object"},
		"that are nothing":       {"", "JSON object"},
		"that are long":          {claims(map[string]any{"a": strings.Repeat("x", maxClaims)}), "are allowed"},
		"of two issuers":         {base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://other","iss":"` + url + `","exp":` + strconv.FormatInt(now.Unix(), 10) + `}`)), "twice"},
		"with two ends":          {base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + url + `","exp":99999999999,"e\u0078p":` + strconv.FormatInt(now.Unix(), 10) + `}`)), "twice"},
		"with a second document": {base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + url + `"}{}`)), "JSON object"},
	} {
		if _, err := w.sign(tc.claims); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("claims %s: %v", name, err)
		}
	}
	if _, err := w.sign(claims(map[string]any{"exp": now.Add(89 * 24 * time.Hour).Unix()})); err != nil {
		t.Errorf("of a pod, for the API server: %v", err)
	}
}

func TestFetchKeys(t *testing.T) {
	w := newWorld(t)
	next, err := w.ring().Rotate(time.Now().Add(-48*time.Hour), 0, rand.Reader)
	if err == nil {
		next, err = next.Rotate(time.Now(), time.Hour, rand.Reader)
	}
	if err == nil {
		w.write(next)
	}
	got, errFetch := w.client.FetchKeys(t.Context(), &externaljwt.FetchKeysRequest{})
	if err != nil || errFetch != nil || got.GetRefreshHintSeconds() != 30 || got.GetDataTimestamp().CheckValid() != nil {
		t.Fatalf("%v, %v, %v", got, err, errFetch)
	}
	var hidden []bool
	for _, k := range got.GetKeys() {
		public, err := x509.ParsePKIXPublicKey(k.GetKey())
		if err != nil {
			t.Fatal(err)
		}
		if id, err := issuer.KeyID(public); err != nil || id != k.GetKeyId() {
			t.Errorf("%s is called %s", id, k.GetKeyId())
		}
		hidden = append(hidden, k.GetExcludeFromOidcDiscovery())
	}
	// The oldest, the one that signs, the next one, and that of tokens in Secrets.
	if !slices.Equal(hidden, []bool{true, false, false, true}) {
		t.Errorf("excluded from discovery: %v", hidden)
	}
	about, err := w.client.Metadata(t.Context(), &externaljwt.MetadataRequest{})
	if err != nil || about.GetMaxTokenExpirationSeconds() != 90*24*3600 {
		t.Errorf("%v, %v", about, err)
	}
}

// TestOneKeyForAll is a cluster of before there were keys of their own: that of tokens in Secrets is published, since
// it signs, and named once.
func TestOneKeyForAll(t *testing.T) {
	w := newWorld(t)
	legacy, err := readLegacy(w.config.LegacyKey)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := tokenkeys.Of(time.Now(), legacy)
	if err != nil {
		t.Fatal(err)
	}
	w.write(ring)
	got, err := w.client.FetchKeys(t.Context(), &externaljwt.FetchKeysRequest{})
	if err != nil || len(got.GetKeys()) != 1 || got.GetKeys()[0].GetExcludeFromOidcDiscovery() {
		t.Errorf("%v, %v", got, err)
	}
}

// TestAway has the API server ask while the signer is away: it waits, and is answered in the end.
func TestAway(t *testing.T) {
	w := newWorld(t)
	if _, err := w.sign(claims(nil)); err != nil {
		t.Fatal(err)
	}
	w.end()
	answered := make(chan error, 1)
	go func() {
		_, err := w.sign(claims(nil))
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered by nobody: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	w.start()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if target, err := os.Readlink(w.config.Socket); err != nil || target != socketdir.Link(w.config.Socket) {
		t.Errorf("the socket is at %q, %v: it cannot be shown to the API server", target, err)
	}
}

// TestASecondSigner ends, and leaves the first one its socket.
func TestASecondSigner(t *testing.T) {
	w := newWorld(t)
	if _, err := w.sign(claims(nil)); err != nil { // it serves
		t.Fatal(err)
	}
	if err := Run(t.Context(), w.config); err == nil || !strings.Contains(err.Error(), "opening the port") {
		t.Errorf("the second: %v", err)
	}
	connection, err := new(net.Dialer).DialContext(t.Context(), "unix", w.config.Socket)
	if err != nil {
		t.Fatal("the first has lost its socket:", err)
	}
	_ = connection.Close()
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	config := Config{Issuer: url, Keys: dir, LegacyKey: filepath.Join(dir, "legacy.pem"), Socket: filepath.Join(dir, "s"), Client: "a", ClientCA: "b", Log: slog.New(slog.DiscardHandler)}
	for want, change := range map[string]func(*Config){
		"needs an issuer":                      func(c *Config) { c.Issuer = "" },
		"a client, the client's authority":     func(c *Config) { c.Client = "" },
		"reading the key of tokens in Secrets": func(*Config) {},
	} {
		c := config
		change(&c)
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// BenchmarkSign is what a token costs the signer, by both algorithms.
func BenchmarkSign(b *testing.B) {
	for _, algorithm := range []tokenkeys.Algorithm{tokenkeys.RS256, tokenkeys.ES256} {
		dir := b.TempDir()
		ring, err := tokenkeys.New(time.Now(), algorithm, rand.Reader)
		if err == nil {
			err = tokenkeys.Write(filepath.Join(dir, "keys.json"), ring)
		}
		var keys *tokenkeys.Keeper
		if err == nil {
			keys, err = tokenkeys.Open(dir, time.Now())
		}
		if err != nil {
			b.Fatal(err)
		}
		s := &signer{issuer: url, keys: keys, now: time.Now}
		request := &externaljwt.SignJWTRequest{Claims: claims(nil)}
		b.Run(string(algorithm), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Sign(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
