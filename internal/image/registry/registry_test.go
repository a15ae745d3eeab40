// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/iam/registrylogin"
	"muster.dev/muster/internal/image/registrystore"
)

// account lets the password "good" in, with some actions denied.
type account struct {
	away  bool
	deny  map[string]bool // "action resource"
	asked []string
}

func (a *account) Decide(_ context.Context, q registrylogin.Question) (registrylogin.Answer, error) {
	if a.away {
		return registrylogin.Answer{}, errors.New("nobody listens")
	}
	if q.Password != "good" {
		return registrylogin.Answer{}, &registrylogin.RefusedError{Reason: "no such password"}
	}
	denied := map[string]string{}
	for _, action := range q.Actions {
		a.asked = append(a.asked, action)
		if a.deny[action+" "+q.Resource] || a.deny[action] {
			denied[action] = "not authorized to perform: " + action
		}
	}
	return registrylogin.Answer{Principal: "arn:aws:iam::000000000000:user/a", Account: "000000000000", Denied: denied}, nil
}

type world struct {
	*testing.T
	account *account
	store   *registrystore.Store
	handler http.Handler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, account: &account{deny: map[string]bool{}}, store: registrystore.New(t.TempDir() + "/registry")}
	handler, err := New(Config{Store: w.store, Account: w.account, ID: "000000000000", Region: "us-east-1", Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w.handler = handler
	return w
}

// ask sends a request with the good password.
func (w *world) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	r.SetBasicAuth("AWS", "good")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

func (w *world) expect(answer *httptest.ResponseRecorder, status int, has string) {
	w.Helper()
	if answer.Code != status || !strings.Contains(answer.Body.String(), has) {
		w.Errorf("%d %s, want %d with %q", answer.Code, answer.Body, status, has)
	}
}

// push pushes a blob in two parts.
func (w *world) push(repository, content string) digest.Digest {
	w.Helper()
	sum := digest.FromString(content)
	begun := w.ask("POST", "/v2/"+repository+"/blobs/uploads/", "")
	w.expect(begun, 202, "")
	at := begun.Header().Get("Location")
	half := len(content) / 2
	part := w.ask("PATCH", at, content[:half], "Content-Range", fmt.Sprintf("0-%d", half-1))
	w.expect(part, 202, "")
	if got := part.Header().Get("Range"); got != fmt.Sprintf("0-%d", max(half-1, 0)) {
		w.Errorf("Range %q", got)
	}
	w.expect(w.ask("PUT", at+"?digest="+sum.String(), content[half:]), 201, "")
	return sum
}

const imageType = "application/vnd.oci.image.manifest.v1+json"

func (w *world) manifest(config, layer string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[{"mediaType":"x","digest":%q,"size":%d}]}`,
		imageType, digest.FromString(config), len(config), digest.FromString(layer), len(layer))
}

func TestPushAndPull(t *testing.T) {
	w := newWorld(t)
	config, layer := w.push("team/app", "config"), w.push("team/app", "the layer")
	content := w.manifest("config", "the layer")
	put := w.ask("PUT", "/v2/team/app/manifests/v1", content, "Content-Type", imageType)
	w.expect(put, 201, "")
	sum := put.Header().Get("Docker-Content-Digest")
	for _, reference := range []string{"v1", sum} {
		got := w.ask("GET", "/v2/team/app/manifests/"+reference, "")
		w.expect(got, 200, content)
		if got.Header().Get("Content-Type") != imageType || got.Header().Get("Docker-Content-Digest") != sum {
			t.Errorf("headers %v", got.Header())
		}
		if head := w.ask("HEAD", "/v2/team/app/manifests/"+reference, ""); head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Length") != fmt.Sprint(len(content)) {
			t.Errorf("HEAD: %d %v", head.Code, head.Header())
		}
	}
	w.expect(w.ask("GET", "/v2/team/app/blobs/"+layer.String(), ""), 200, "the layer")
	w.expect(w.ask("GET", "/v2/team/app/blobs/"+layer.String(), "", "Range", "bytes=4-"), 206, "layer")
	w.expect(w.ask("HEAD", "/v2/team/app/blobs/"+config.String(), ""), 200, "")
	w.expect(w.ask("GET", "/v2/team/app/tags/list", ""), 200, `{"name":"team/app","tags":["v1"]}`)

	// A blob is not another repository's because its digest is known.
	w.push("other", "something")
	w.expect(w.ask("GET", "/v2/other/blobs/"+layer.String(), ""), 404, "BLOB_UNKNOWN")
	w.expect(w.ask("PUT", "/v2/other/manifests/v1", content, "Content-Type", imageType), 404, "MANIFEST_BLOB_UNKNOWN")
	w.account.deny["ecr:GetDownloadUrlForLayer arn:aws:ecr:us-east-1:000000000000:repository/team/app"] = true
	w.expect(w.ask("POST", "/v2/other/blobs/uploads/?mount="+layer.String()+"&from=team/app", ""), 202, "")
	w.expect(w.ask("GET", "/v2/other/blobs/"+layer.String(), ""), 404, "BLOB_UNKNOWN")
	clear(w.account.deny)
	w.expect(w.ask("POST", "/v2/other/blobs/uploads/?mount="+layer.String()+"&from=team/app", ""), 201, "")
	w.expect(w.ask("GET", "/v2/other/blobs/"+layer.String(), ""), 200, "the layer")
}

func TestEachRequestNeedsItsRight(t *testing.T) {
	w := newWorld(t)
	layer := w.push("app", "the layer")
	w.push("app", "config")
	w.expect(w.ask("PUT", "/v2/app/manifests/v1", w.manifest("config", "the layer"), "Content-Type", imageType), 201, "")
	upload := w.ask("POST", "/v2/app/blobs/uploads/", "").Header().Get("Location")
	for _, c := range []struct{ method, path, action string }{
		{"GET", "/v2/app/manifests/v1", "ecr:BatchGetImage"},
		{"HEAD", "/v2/app/manifests/v1", "ecr:BatchGetImage"},
		{"PUT", "/v2/app/manifests/v1", "ecr:PutImage"},
		{"GET", "/v2/app/blobs/" + layer.String(), "ecr:GetDownloadUrlForLayer"},
		{"POST", "/v2/app/blobs/uploads/", "ecr:InitiateLayerUpload"},
		{"PATCH", upload, "ecr:UploadLayerPart"},
		{"GET", upload, "ecr:UploadLayerPart"},
		{"DELETE", upload, "ecr:UploadLayerPart"},
		{"PUT", upload + "?digest=" + layer.String(), "ecr:CompleteLayerUpload"},
		{"GET", "/v2/app/tags/list", "ecr:ListImages"},
	} {
		w.account.deny, w.account.asked = map[string]bool{c.action: true}, nil
		w.expect(w.ask(c.method, c.path, ""), 403, "")
		if fmt.Sprint(w.account.asked) != "["+c.action+"]" {
			t.Errorf("%s %s: asked about %v", c.method, c.path, w.account.asked)
		}
	}
	w.account.deny = map[string]bool{"ecr:GetDownloadUrlForLayer": true}
	w.expect(w.ask("HEAD", "/v2/app/blobs/"+layer.String(), ""), 200, "")
	w.account.deny["ecr:BatchCheckLayerAvailability"] = true
	w.expect(w.ask("HEAD", "/v2/app/blobs/"+layer.String(), ""), 403, "")
	w.account.deny = map[string]bool{"ecr:CreateRepository": true}
	w.expect(w.ask("POST", "/v2/new/blobs/uploads/", ""), 404, "NAME_UNKNOWN")
	clear(w.account.deny)
	w.expect(w.ask("POST", "/v2/new/blobs/uploads/", ""), 202, "")
}

func TestStrangersAreRefused(t *testing.T) {
	w := newWorld(t)
	w.push("app", "the layer")
	for name, change := range map[string]func(*http.Request){
		"nobody":           func(r *http.Request) { r.Header.Del("Authorization") },
		"another password": func(r *http.Request) { r.SetBasicAuth("AWS", "bad") },
		"another user":     func(r *http.Request) { r.SetBasicAuth("admin", "good") },
		"a bearer":         func(r *http.Request) { r.Header.Set("Authorization", "Bearer good") },
	} {
		for _, path := range []string{"/v2/", "/v2/app/manifests/v1", "/v2/nowhere/tags/list", "/v2/_catalog", "/", "/v2/app/blobs/uploads/"} {
			for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"} {
				r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
				change(r)
				answer := httptest.NewRecorder()
				w.handler.ServeHTTP(answer, r)
				if answer.Code != 401 || !strings.HasPrefix(answer.Header().Get("WWW-Authenticate"), "Basic ") {
					t.Errorf("%s: %s %s: %d %s", name, method, path, answer.Code, answer.Body)
				}
			}
		}
	}
	w.account.away = true
	w.expect(w.ask("GET", "/v2/", ""), 503, "the account does not answer")
}

func TestWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.push("app", "config")
	w.push("app", "the layer")
	good := w.manifest("config", "the layer")
	upload := func() string { return w.ask("POST", "/v2/app/blobs/uploads/", "").Header().Get("Location") }
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		has                string
	}{
		"a name that leads up":   {"GET", "/v2/../../etc/manifests/v1", "", 400, "NAME_INVALID"},
		"a name in capitals":     {"GET", "/v2/App/manifests/v1", "", 400, "NAME_INVALID"},
		"a tag that leads up":    {"PUT", "/v2/app/manifests/..", good, 400, "invalid tag"},
		"another digest":         {"PUT", "/v2/app/manifests/" + digest.FromString("x").String(), good, 400, "MANIFEST_INVALID"},
		"a manifest of nothing":  {"PUT", "/v2/app/manifests/v1", `{"schemaVersion":2}`, 400, "it has no config"},
		"no JSON":                {"PUT", "/v2/app/manifests/v1", `{`, 400, "MANIFEST_INVALID"},
		"an image and an index":  {"PUT", "/v2/app/manifests/v1", strings.Replace(good, "{", `{"manifests":[],`, 1), 400, "MANIFEST_INVALID"},
		"a size":                 {"PUT", "/v2/app/manifests/v1", strings.Replace(good, `"size":9`, `"size":8`, 1), 400, "it says 8"},
		"a large manifest":       {"PUT", "/v2/app/manifests/v1", `"` + strings.Repeat("x", registrystore.MaxManifest) + `"`, 413, "MANIFEST_INVALID"},
		"content of no digest":   {"PUT", upload() + "?digest=" + digest.FromString("x").String(), "y", 400, "DIGEST_INVALID"},
		"no digest":              {"PUT", upload(), "y", 400, "the parameter digest is missing"},
		"an upload of nobody":    {"PATCH", "/v2/app/blobs/uploads/../../../x", "y", 405, "UNSUPPORTED"},
		"another one's upload":   {"PATCH", strings.Replace(upload(), "/app/", "/other/", 1), "y", 404, "BLOB_UPLOAD_UNKNOWN"},
		"an index of nothing":    {"DELETE", "/v2/app/manifests/v1", "", 405, "UNSUPPORTED"},
		"a digest that leads up": {"GET", "/v2/app/blobs/sha256:..", "", 400, "DIGEST_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"Content-Type", imageType}
			w := &world{t, w.account, w.store, w.handler}
			w.expect(w.ask(c.method, c.path, c.body, headers...), c.status, c.has)
		})
	}
	at := upload()
	w.expect(w.ask("PATCH", at, "abc", "Content-Range", "5-7"), 416, "the upload is at byte 0")
	w.expect(w.ask("PATCH", at, "abc", "Content-Range", "0-2"), 202, "")
	w.expect(w.ask("GET", at, ""), 204, "")
	w.expect(w.ask("DELETE", at, ""), 204, "")
	w.expect(w.ask("GET", at, ""), 404, "BLOB_UPLOAD_UNKNOWN")
}

// A body is not read before its sender may send it.
func TestNoBodyOfAStrangerIsRead(t *testing.T) {
	w := newWorld(t)
	w.push("app", "x1")
	read := &reads{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/v2/app/manifests/v1", read)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	if answer.Code != 401 || read.n > 0 {
		t.Errorf("%d, %d reads", answer.Code, read.n)
	}
}

type reads struct{ n int }

func (r *reads) Read([]byte) (int, error) { r.n++; return 0, io.EOF }

func TestPagesOfTags(t *testing.T) {
	w := newWorld(t)
	w.push("app", "config")
	w.push("app", "the layer")
	for _, tag := range []string{"a", "b", "c"} {
		w.expect(w.ask("PUT", "/v2/app/manifests/"+tag, w.manifest("config", "the layer"), "Content-Type", imageType), 201, "")
	}
	first := w.ask("GET", "/v2/app/tags/list?n=2", "")
	w.expect(first, 200, `["a","b"]`)
	if got := first.Header().Get("Link"); got != `</v2/app/tags/list?last=b&n=2>; rel="next"` {
		t.Errorf("Link %s", got)
	}
	w.expect(w.ask("GET", "/v2/app/tags/list?n=2&last=b", ""), 200, `["c"]`)
	w.expect(w.ask("GET", "/v2/app/tags/list?n=x", ""), 400, "it must be a number")
}

func FuzzParse(f *testing.F) {
	for _, path := range []string{"/v2/", "/v2/a/b/manifests/c", "/v2/a/blobs/uploads/d", "/v2/manifests/manifests/manifests", "/v2/a/tags/list"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r := parse(path)
		if r.kind == kindOther || r.kind == kindBase {
			return
		}
		if !strings.Contains(path, r.repository) || !strings.HasSuffix(strings.TrimSuffix(path, "/"), r.reference) && r.kind != kindUploads && r.kind != kindTags {
			t.Errorf("%q: %+v", path, r)
		}
	})
}

func TestBlobsAsTheyAre(t *testing.T) {
	w := newWorld(t)
	content := strings.Repeat("\x00\xff", 200<<10)
	sum := w.push("app", content)
	if got := w.ask("GET", "/v2/app/blobs/"+sum.String(), ""); !bytes.Equal(got.Body.Bytes(), []byte(content)) {
		t.Error("another content")
	}
}
