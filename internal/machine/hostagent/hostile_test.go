// SPDX-License-Identifier: Apache-2.0

package hostagent_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/platform/mutualclient"
	"muster.dev/muster/internal/storage/volumemount"
)

// untouched is a host of which nothing may be asked.
type untouched struct{ asked atomic.Int32 }

func (h *untouched) touch() error {
	h.asked.Add(1)
	return nil
}

func (h *untouched) Launch(context.Context, hostagent.Launch) (machine.Instance, error) {
	return machine.Instance{}, h.touch()
}

func (h *untouched) Get(context.Context, hostagent.Machine) (machine.Instance, error) {
	return machine.Instance{}, h.touch()
}

func (h *untouched) List(context.Context, hostagent.List) ([]machine.Instance, error) {
	return nil, h.touch()
}

func (h *untouched) Stop(context.Context, hostagent.Machine) error { return h.touch() }

func (h *untouched) Terminate(context.Context, hostagent.Machine) error { return h.touch() }

func (h *untouched) Report(context.Context, hostagent.Machine) (*bootreport.Report, error) {
	return nil, h.touch()
}

func (h *untouched) Mount(context.Context, hostagent.Mount) error { return h.touch() }

func (h *untouched) Mounted(context.Context, hostagent.Mount) (bool, error) { return false, h.touch() }

func (h *untouched) Unmount(context.Context, hostagent.Unmount) error { return h.touch() }

func (h *untouched) Writers(context.Context, hostagent.Volume) ([]string, error) {
	return nil, h.touch()
}

func (h *untouched) Resize(context.Context, hostagent.Volume) error { return h.touch() }

func (h *untouched) Sweep(context.Context, hostagent.Sweep) error { return h.touch() }

func (h *untouched) Boot(context.Context, hostagent.Machine) (string, error) { return "", h.touch() }

func (h *untouched) Drill(context.Context, hostagent.Drill) error { return h.touch() }

func (h *untouched) Listen(context.Context, hostagent.Listen) (net.Listener, error) {
	return nil, errors.Join(h.touch(), io.EOF)
}

func (h *untouched) Load(context.Context, hostagent.Load, io.Reader) error { return h.touch() }

func (h *untouched) Unload(context.Context, hostagent.Unload) error { return h.touch() }

func (h *untouched) Images(context.Context) ([]imagestore.Entry, error) { return nil, h.touch() }

func (h *untouched) Shown(context.Context, hostagent.Shown) ([]string, error) { return nil, h.touch() }

func (h *untouched) Dial(context.Context, hostagent.Dial) (net.Conn, error) {
	return nil, errors.Join(h.touch(), io.EOF)
}

func TestStrangersAreNotAnswered(t *testing.T) {
	host := &untouched{}
	w := newWorld(t, host)
	other := newAuthority(t)
	for what, credential := range map[string]string{
		"a certificate of another authority":                other.credential(t, pkix.Name{CommonName: clientName}),
		"another common name":                               w.credential(t, pkix.Name{CommonName: "machine"}),
		"no common name":                                    w.credential(t, pkix.Name{}),
		"the server's own certificate":                      w.credential(t, pkix.Name{CommonName: serverName}),
		"the right common name, in an organization":         w.credential(t, pkix.Name{CommonName: clientName, Organization: []string{"system:masters"}}),
		"the right common name with something that follows": w.credential(t, pkix.Name{CommonName: clientName + "\x00"}),
	} {
		c := hostagent.NewClient(hostagent.ClientConfig{URL: w.url, Authority: w.authority, Server: serverName, Credential: credential})
		if all, err := c.List(t.Context(), hostagent.List{Provider: "any"}); err == nil {
			t.Errorf("%s: %v", what, all)
		}
		c.Close()
	}
	credential := w.credential(t, pkix.Name{CommonName: clientName})
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		t.Fatal(err)
	}
	for what, config := range map[string]*tls.Config{
		"no certificate": {InsecureSkipVerify: true},
		"TLS 1.2":        {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		response, err := client.Post(w.url+"/v1/list", "application/json", strings.NewReader(`{"provider":"any"}`))
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: %s", what, response.Status)
		}
	}
	if asked := host.asked.Load(); asked > 0 {
		t.Errorf("strangers had the host asked %d times", asked)
	}
}

// body is a request as JSON with one part changed.
func body(t *testing.T, request any, old, changed string) string {
	t.Helper()
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), old) {
		t.Fatalf("%s has no %s", raw, old)
	}
	return strings.Replace(string(raw), old, changed, 1)
}

const id = "i-0123456789abcdef0"

func TestHostileRequests(t *testing.T) {
	host := &untouched{}
	w := newWorld(t, host)
	client := mutualclient.New(w.authority, w.credential(t, pkix.Name{CommonName: clientName}), serverName, 0)
	t.Cleanup(client.CloseIdleConnections)
	one := hostagent.Machine{Provider: "any", ID: id}
	launch := hostagent.Launch{Provider: "any", Request: machine.LaunchRequest{ID: id, UserData: []byte("told"), SecurityGroups: []string{"sg-0123456789abcdef0"}}}
	mount := hostagent.Mount{Provider: "any", Mount: volumemount.Mount{
		Machine: id, Volume: volumemount.Volume{Cluster: "blue", FileSystemID: "fs-00000000000000001", Path: "/db", Disk: "fsap-00000000000000001"}, Target: "/var/lib/data",
	}}
	unmount := hostagent.Unmount{Machine: one, Target: "/var/lib/data"}
	const dial = `{"provider":"any","id":"` + id + `","address":"%s"}`
	for what, c := range map[string]struct {
		method, path, kind, load, body string
		want                           int
	}{
		"an operation that does not exist":           {path: "exec", body: body(t, one, id, id), want: http.StatusNotFound},
		"a path that leads elsewhere":                {path: "../v1//list", body: `{"provider":"any"}`, want: http.StatusTemporaryRedirect},
		"another method":                             {method: http.MethodGet, path: "list", want: http.StatusMethodNotAllowed},
		"a form, as a browser sends it":              {path: "list", kind: "application/x-www-form-urlencoded", body: "provider=any", want: http.StatusUnsupportedMediaType},
		"no body":                                    {path: "list", want: http.StatusBadRequest},
		"no JSON":                                    {path: "list", body: "provider", want: http.StatusBadRequest},
		"two requests":                               {path: "list", body: `{"provider":"any"}{}`, want: http.StatusBadRequest},
		"an unknown field":                           {path: "get", body: body(t, one, `"id"`, `"force":true,"id"`), want: http.StatusBadRequest},
		"a field twice":                              {path: "get", body: body(t, one, `"id"`, `"id":"i-0123456789abcdef1","id"`), want: http.StatusBadRequest},
		"a field in other letters":                   {path: "get", body: body(t, one, `"id"`, `"ID"`), want: http.StatusBadRequest},
		"an id of another form":                      {path: "get", body: body(t, one, id, "i-0123456789ABCDEF0"), want: http.StatusBadRequest},
		"an id that is a path, to get":               {path: "get", body: body(t, one, id, "../../etc"), want: http.StatusBadRequest},
		"an id that is a path, to stop":              {path: "stop", body: body(t, one, id, "i-0123456789abcdef0/.."), want: http.StatusBadRequest},
		"an id that is a path, to terminate":         {path: "terminate", body: body(t, one, id, "i-0123456789abcdef0/.."), want: http.StatusBadRequest},
		"an id that is a path, to report":            {path: "report", body: body(t, one, id, "/etc"), want: http.StatusBadRequest},
		"an id that is a path, to launch":            {path: "launch", body: body(t, launch, id, "../../etc"), want: http.StatusBadRequest},
		"no id":                                      {path: "terminate", body: `{"provider":"any"}`, want: http.StatusBadRequest},
		"an unknown field of a launch":               {path: "launch", body: body(t, launch, `"userData"`, `"privileged":true,"userData"`), want: http.StatusBadRequest},
		"user data that is too long":                 {path: "launch", body: body(t, launch, `"dG9sZA=="`, `"`+strings.Repeat("aaaa", 5462)+`"`), want: http.StatusBadRequest},
		"a request that is too large":                {path: "launch", body: strings.Repeat(" ", 64<<10) + body(t, launch, id, id), want: http.StatusRequestEntityTooLarge},
		"a security group that is a rule":            {path: "launch", body: body(t, launch, "sg-0123456789abcdef0", "sg-0 accept; }"), want: http.StatusBadRequest},
		"more pods than a subnet has":                {path: "launch", body: body(t, launch, `"userData"`, `"pods":65536,"userData"`), want: http.StatusBadRequest},
		"fewer pods than none":                       {path: "launch", body: body(t, launch, `"userData"`, `"pods":-1,"userData"`), want: http.StatusBadRequest},
		"a type that is a path":                      {path: "launch", body: body(t, launch, `"userData"`, `"type":"../m5","userData"`), want: http.StatusBadRequest},
		"a machine that is a path, to mount":         {path: "mount", body: body(t, mount, id, "../i"), want: http.StatusBadRequest},
		"a file system that is a path":               {path: "mount", body: body(t, mount, "fs-00000000000000001", "../fs"), want: http.StatusBadRequest},
		"a volume above its file system":             {path: "mount", body: body(t, mount, "/db", "/../db"), want: http.StatusBadRequest},
		"a volume without a path, to look at":        {path: "mounted", body: body(t, mount, "/db", ""), want: http.StatusBadRequest},
		"a disk that is a name of another":           {path: "mount", body: body(t, mount, "fsap-00000000000000001", "x"), want: http.StatusBadRequest},
		"a target above the machine":                 {path: "mount", body: body(t, mount, "/var/lib/data", "/var/../../etc"), want: http.StatusBadRequest},
		"a target that is relative, to unmount":      {path: "unmount", body: body(t, unmount, "/var/lib/data", "var"), want: http.StatusBadRequest},
		"the whole machine, to unmount":              {path: "unmount", body: body(t, unmount, "/var/lib/data", "/"), want: http.StatusBadRequest},
		"a target with a zero byte":                  {path: "unmount", body: body(t, unmount, "/var/lib/data", "/var\\u0000"), want: http.StatusBadRequest},
		"a target that is too long":                  {path: "unmount", body: body(t, unmount, "/var/lib/data", strings.Repeat("/aaa", 1024)), want: http.StatusBadRequest},
		"a volume of no file system, to resize":      {path: "resize", body: `{"provider":"any","volume":{"path":"/db"}}`, want: http.StatusBadRequest},
		"writers of a path of the host":              {path: "writers", body: `{"provider":"any","volume":{"fileSystemID":"..","path":"/etc"}}`, want: http.StatusBadRequest},
		"an unknown field of a sweep":                {path: "sweep", body: `{"provider":"any","cluster":"blue","all":true}`, want: http.StatusBadRequest},
		"a namespace that is a path, to look at":     {path: "shown", body: `{"namespace":"../../etc"}`, want: http.StatusBadRequest},
		"no namespace, to look at":                   {path: "shown", body: `{}`, want: http.StatusBadRequest},
		"a namespace that is a path, to unload":      {path: "unload", body: `{"names":["docker.io/library/web:dev"],"namespaces":["a/b"]}`, want: http.StatusBadRequest},
		"a name that is a path, to unload":           {path: "unload", body: `{"names":["../web"]}`, want: http.StatusBadRequest},
		"a short name, to unload":                    {path: "unload", body: `{"names":["web"]}`, want: http.StatusBadRequest},
		"an unknown field of all images":             {path: "images", body: `{"all":true}`, want: http.StatusBadRequest},
		"an archive of another type":                 {path: "load", load: `{}`, body: "x", want: http.StatusUnsupportedMediaType},
		"an archive for nobody knows whom":           {path: "load", kind: "application/octet-stream", body: "x", want: http.StatusBadRequest},
		"an archive for a path":                      {path: "load", kind: "application/octet-stream", load: `{"namespaces":[".."]}`, body: "x", want: http.StatusBadRequest},
		"an archive with an unknown field":           {path: "load", kind: "application/octet-stream", load: `{"force":true}`, body: "x", want: http.StatusBadRequest},
		"an archive with a header too large":         {path: "load", kind: "application/octet-stream", load: `{"image":"` + strings.Repeat("x", 64<<10) + `"}`, body: "x", want: http.StatusRequestHeaderFieldsTooLarge},
		"a program that no drill holds":              {path: "drill", body: `{"provider":"any","id":"` + id + `","effect":{"held":"../sshd"}}`, want: http.StatusBadRequest},
		"a socket above the machine":                 {path: "listen", body: `{"provider":"any","id":"` + id + `","socket":"/run/../../etc/a.sock"}`, want: http.StatusBadRequest},
		"a socket of what can be no machine":         {path: "listen", body: `{"provider":"any","id":"..","socket":"/run/a.sock"}`, want: http.StatusBadRequest},
		"a connection that nobody made":              {path: "accept", body: `{"name":"GUESSED"}`, want: http.StatusNotFound},
		"the boot of what can be no machine":         {path: "boot", body: `{"provider":"any","id":"../i"}`, want: http.StatusBadRequest},
		"a connection to a name":                     {path: "dial", body: fmt.Sprintf(dial, "localhost:80"), want: http.StatusBadRequest},
		"a connection to no port":                    {path: "dial", body: fmt.Sprintf(dial, "127.0.0.1:0"), want: http.StatusBadRequest},
		"a connection inside what can be no machine": {path: "dial", body: strings.Replace(fmt.Sprintf(dial, "127.0.0.1:80"), id, "..", 1), want: http.StatusBadRequest},
	} {
		if c.method == "" {
			c.method = http.MethodPost
		}
		if c.kind == "" {
			c.kind = "application/json"
		}
		request, err := http.NewRequestWithContext(t.Context(), c.method, w.url+"/v1/"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", c.kind)
		if c.load != "" {
			request.Header.Set("Muster-Load", c.load)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != c.want || err != nil || len(said) > 16<<10 {
			t.Errorf("%s: %s, %d bytes, %v; want status %d", what, response.Status, len(said), err, c.want)
		}
	}
	if asked := host.asked.Load(); asked > 0 {
		t.Errorf("hostile requests had the host asked %d times", asked)
	}
}

// answers is a server that answers everything alike.
func answers(t *testing.T, status int, content []byte) *hostagent.Client {
	t.Helper()
	w := newAuthority(t)
	credential := w.credential(t, pkix.Name{CommonName: serverName})
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", "/v1/list")
		rw.WriteHeader(status)
		_, _ = rw.Write(content)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends when it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	w.url = "https://" + listener.Addr().String()
	return w.client(t, clientName)
}

func TestHostileAnswers(t *testing.T) {
	asked := hostagent.Machine{Provider: "any", ID: id}
	for what, c := range map[string]struct {
		status  int
		content string
	}{
		"another machine":              {http.StatusOK, `{"id":"i-0123456789abcdef1","state":"Running","privateIP":"192.168.64.11"}`},
		"a machine without an address": {http.StatusOK, `{"id":"` + id + `","state":"Running"}`},
		"nothing":                      {http.StatusOK, ""},
		"no JSON":                      {http.StatusOK, "<html>"},
		"another status":               {http.StatusAccepted, `{"id":"` + id + `","privateIP":"192.168.64.11"}`},
		"a redirection":                {http.StatusTemporaryRedirect, ""},
		"a fault that is not one":      {http.StatusConflict, "[]"},
		"a fault without a text":       {http.StatusConflict, `{"kind":"NotFound"}`},
		"a fault without an end":       {http.StatusConflict, `{"message":"` + strings.Repeat("x", 1<<20)},
		"an answer that never ends":    {http.StatusOK, `"` + strings.Repeat("x", 9<<20)},
		"a refusal for the terminal":   {http.StatusForbidden, "\x1b[2J"},
	} {
		client := answers(t, c.status, []byte(c.content))
		instance, err := client.Get(t.Context(), asked)
		if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 16<<10 {
			t.Errorf("%s: %v, %.200v", what, instance, err)
		}
		connection, err := client.Dial(t.Context(), hostagent.Dial{Machine: asked})
		if err == nil {
			_ = connection.Close()
			t.Errorf("%s, to a dial: a connection", what)
		}
	}
}

func TestAServerOfAnotherNameIsAskedNothing(t *testing.T) {
	host := &untouched{}
	w := newWorld(t, host)
	c := hostagent.NewClient(hostagent.ClientConfig{URL: w.url, Authority: w.authority, Server: "another", Credential: w.credential(t, pkix.Name{CommonName: clientName})})
	t.Cleanup(c.Close)
	if err := c.Terminate(t.Context(), hostagent.Machine{Provider: "any", ID: id}); err == nil || host.asked.Load() > 0 {
		t.Errorf("Terminate: %v, and the host was asked %d times", err, host.asked.Load())
	}
}

// A client that sends bytes before the server has agreed gets no connection into a machine.
func TestBytesBeforeTheAgreement(t *testing.T) {
	dialed := make(chan net.Conn, 1)
	w := newWorld(t, dials{made: dialed})
	credential := w.credential(t, pkix.Name{CommonName: clientName})
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := tls.Dial("tcp", strings.TrimPrefix(w.url, "https://"), &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	ask := `{"provider":"any","id":"` + id + `","address":"127.0.0.1:80"}`
	var sent bytes.Buffer
	fmt.Fprintf(&sent, "POST /v1/dial HTTP/1.1\r\nHost: host\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%sEARLY", len(ask), ask)
	if _, err := connection.Write(sent.Bytes()); err != nil {
		t.Fatal(err)
	}
	inside := <-dialed
	defer func() { _ = inside.Close() }()
	if got, err := io.ReadAll(inside); err != nil || len(got) > 0 {
		t.Errorf("the machine hears %q, %v", got, err)
	}
}

// dials is a host with one end of a connection.
type dials struct {
	hostagent.Host
	made chan net.Conn
}

func (d dials) Dial(context.Context, hostagent.Dial) (net.Conn, error) {
	near, far := net.Pipe()
	d.made <- far
	return near, nil
}
