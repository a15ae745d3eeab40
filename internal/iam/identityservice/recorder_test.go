// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/iam/identityservice"
)

var update = flag.Bool("update", false, "write the golden files anew")

// answersAt is the moment of every recorded request.
var answersAt = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// recorder sends requests to a service of its own and keeps every answer as it was on the wire. Values that differ from
// run to run are replaced: request ids, secrets, sealed tokens and markers, and ids, which are numbered by their first
// appearance.
type recorder struct {
	*world
	signers map[string]signer
	issuers *issuers
	clock   time.Time // of the service
	at      time.Time // of the signature of the next request
	out     bytes.Buffer
	ids     map[string]string
	kept    map[string]string // values that {NAME} in later requests stands for
	actions map[string]bool
	codes   map[string]bool
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{issuers: newIssuers(t), signers: map[string]signer{}, clock: answersAt, at: answersAt, ids: map[string]string{}, kept: map[string]string{}, actions: map[string]bool{}, codes: map[string]bool{}}
	r.world = newWorld(t, func(c *identityservice.Config) {
		c.Now, c.Random, c.Issuers, c.Rate, c.Burst = func() time.Time { return r.clock }, rand.NewChaCha8([32]byte{1}), r.issuers, 1e6, 1e6
	})
	r.signers["admin"] = r.admin()
	r.signers["nobody"] = signer{}
	r.signers["stranger"] = signer{id: "AKIAAAAAAAAAAAAAAAAA", secret: "not known"}
	r.signers["forger"] = signer{id: r.key.ID, secret: "not its secret"}
	r.kept["TOKEN"] = r.issuers.token(t, ownURL, answersAt, nil)
	r.kept["LATE"] = r.issuers.token(t, ownURL, answersAt, map[string]any{"exp": answersAt.Add(-time.Hour).Unix(), "iat": answersAt.Add(-2 * time.Hour).Unix()})
	r.kept["STRANGE"] = r.issuers.token(t, secondURL, answersAt, nil)
	r.kept["FOREIGN"] = r.issuers.token(t, foreignURL, answersAt, map[string]any{"kubernetes.io": nil})
	return r
}

var versions = map[string]string{"iam": "2010-05-08", "sts": "2011-06-15"}

// ask sends an action with a form such as UserName=a&Path=/b/ whose values are not escaped yet.
func (r *recorder) ask(who, service, action, form string) string {
	r.t.Helper()
	values := "Action=" + action + "&Version=" + versions[service]
	for pair := range strings.SplitSeq(r.filled(form), "&") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			values += "&" + name + "=" + url.QueryEscape(value)
		}
	}
	r.actions[service+":"+action] = true
	return r.send(who, fmt.Sprintf("%s %s:%s %s", who, service, action, form), service, http.MethodPost, "/", values, http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}})
}

func (r *recorder) filled(text string) string {
	for name, value := range r.kept {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// send records one request and its answer, and returns the answer's body.
func (r *recorder) send(who, title, service, method, target, body string, header http.Header) string {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+target, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header = header.Clone()
	if s := r.signers[who]; s.id != "" {
		sum := sha256.Sum256([]byte(body))
		credentials := aws.Credentials{AccessKeyID: s.id, SecretAccessKey: s.secret, SessionToken: s.token}
		if err := v4.NewSigner().SignHTTP(r.t.Context(), credentials, request, hex.EncodeToString(sum[:]), service, region, r.at); err != nil {
			r.t.Fatal(err)
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		r.t.Fatal(err)
	}
	id := response.Header.Get("X-Amzn-Requestid")
	if id == "" {
		r.t.Errorf("%s: no request id", title)
	}
	fmt.Fprintf(&r.out, "> %s\n%d\n", title, response.StatusCode)
	delete(response.Header, "Content-Length") // the body is below
	if response.Header.Get("Date") != answersAt.Format(http.TimeFormat) {
		response.Header.Set("Date", "of the server")
	}
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		fmt.Fprintf(&r.out, "%s: %s\n", name, strings.ReplaceAll(strings.Join(response.Header[name], ", "), id, "REQUEST"))
	}
	fmt.Fprintf(&r.out, "%s\n\n", strings.ReplaceAll(r.plain(string(raw)), id, "REQUEST"))
	if code := wireCode.FindStringSubmatch(string(raw)); code != nil {
		r.codes[code[1]] = true
	}
	return string(raw)
}

var (
	wireCode = regexp.MustCompile(`<Code>(\w+)</Code>`)
	wireID   = regexp.MustCompile(`\bA[A-Z]{3}[A-Z2-7]{17}\b|\bA[KS]IA[A-Z2-7]{16}\b`)
	sealed   = regexp.MustCompile(`(<(?:SecretAccessKey|SessionToken|Marker|SessionTokenSize|SessionTokenUtilization|PackedPolicySize)>)[^<]+`)
)

// plain replaces what is random.
func (r *recorder) plain(body string) string {
	return wireID.ReplaceAllStringFunc(sealed.ReplaceAllString(body, "${1}…"), func(id string) string {
		if r.ids[id] == "" {
			r.ids[id] = id[:4] + "#" + strconv.Itoa(len(r.ids)+1)
		}
		return r.ids[id]
	})
}

// keep reads an element of an answer for later requests.
func (r *recorder) keep(name, body, element string) {
	r.t.Helper()
	found := regexp.MustCompile("<" + element + ">([^<]+)<").FindStringSubmatch(body)
	if found == nil {
		r.t.Fatalf("no %s in %s", element, body)
	}
	r.kept[name] = found[1]
}

// credentials makes the credentials of an answer a sender's.
func (r *recorder) credentials(who, body string) {
	r.t.Helper()
	s := signer{}
	for element, to := range map[string]*string{"AccessKeyId": &s.id, "SecretAccessKey": &s.secret, "SessionToken": &s.token} {
		if found := regexp.MustCompile("<" + element + ">([^<]+)<").FindStringSubmatch(body); found != nil {
			*to = found[1]
		}
	}
	r.signers[who] = s
}

// chapter ends a golden file and compares it.
func (r *recorder) chapter(name string) {
	r.t.Helper()
	file := filepath.Join("testdata", "answers", name+".txt")
	got := r.out.String()
	r.out.Reset()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		r.t.Errorf("%s (go test -update writes it anew):\n%s", file, diff)
	}
}
