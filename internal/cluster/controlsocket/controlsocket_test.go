// SPDX-License-Identifier: Apache-2.0

package controlsocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/iam/viewer"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/socketdir/socketdirtest"
	"muster.dev/muster/internal/platform/statedir"
)

// asked is a service with the cluster blue that remembers what it is asked.
type asked struct {
	reloads int
	rotated string
	notice  time.Duration
	ready   atomic.Bool
}

func (a *asked) Status(context.Context) servicestatus.Status {
	return servicestatus.Status{PID: os.Getpid(), Clusters: []servicestatus.Cluster{
		{Name: "blue", Ready: a.ready.Load(), NodeGroups: []servicestatus.NodeGroup{}, Machines: []servicestatus.Machine{}},
	}}
}

func (a *asked) Reload() { a.reloads++ }

func (a *asked) Rotate(cluster string) (servicestatus.Rotation, error) {
	if cluster != "blue" {
		return servicestatus.Rotation{}, ErrNoCluster
	}
	a.rotated = cluster
	return servicestatus.Rotation{}, nil
}

func (a *asked) RotateTokenKeys(_ string, notice time.Duration) ([]servicestatus.TokenKey, error) {
	if notice < 0 {
		return nil, errors.New("a key cannot sign before now")
	}
	a.notice = notice
	return []servicestatus.TokenKey{{ID: "1"}}, nil
}

func (a *asked) FreeManagementEtcd(context.Context) (string, error) {
	if !a.ready.Load() {
		return "", errors.New("nothing is left of the quota")
	}
	return "400 MiB were freed", nil
}

func (a *asked) ProveViewer(_ context.Context, p viewer.Proof) (viewer.Viewer, error) {
	if p.Token != "good" {
		return viewer.Viewer{}, fmt.Errorf("%w: not for %s", ErrRefused, p.Audience)
	}
	return viewer.Viewer{ARN: "arn"}, nil
}

func (a *asked) DecideViewer(_ context.Context, d viewer.Decision) ([]viewer.Refusal, error) {
	return make([]viewer.Refusal, len(d.Questions)/2*2), nil
}

func (a *asked) RequestOfViewer(_ context.Context, r viewer.Request) (viewer.Refusal, error) {
	return viewer.Refusal{Code: r.Action, Message: string(r.Input)}, nil
}

func (a *asked) ExplainPod(_ context.Context, _, _, name string) (podidentity.Explanation, error) {
	switch name {
	case "gone":
		return podidentity.Explanation{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	case "early":
		return podidentity.Explanation{}, errors.New("the identity service does not run yet")
	}
	return podidentity.Explanation{Pod: name}, nil
}

// newDir makes a state directory with a path short enough for sockets.
func newDir(t *testing.T) statedir.Dir {
	t.Helper()
	path, err := os.MkdirTemp("/tmp", "m") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	dir := statedir.Dir(path)
	if err := os.Mkdir(dir.Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// says fails unless the error says all of it.
func says(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error is %v, want one with %q", err, text)
		}
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

func TestSocket(t *testing.T) {
	dir, s := newDir(t), &asked{}
	socket := dir.Socket()
	c := NewClient(dir)
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("nobody there: %v", err)
	}
	socketdirtest.Leave(t, socket)
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("nobody there, but a file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Serve(ctx, socket, s, prometheus.NewRegistry()) }()
	eventually(t, "an answer", func() bool { _, err := c.Status(t.Context()); return err == nil })
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v; want mode 0600", socket, info, err)
	}
	status, err := c.Status(t.Context())
	if err != nil || status.PID != os.Getpid() || len(status.Clusters) != 1 || status.Clusters[0].NodeGroups == nil || status.Clusters[0].Machines == nil {
		t.Errorf("status is %+v, %v", status, err)
	}
	if err := c.Reload(t.Context()); err != nil || s.reloads != 1 {
		t.Errorf("%d reloads, %v", s.reloads, err)
	}
	_, err = c.ask(t.Context(), http.MethodGet, "/readyz")
	says(t, err, "503", "/readyz")
	_, err = c.ask(t.Context(), http.MethodGet, "/reload")
	says(t, err, "405")
	if body, err := c.ask(t.Context(), http.MethodGet, "/healthz"); err != nil || string(body) != "ok\n" {
		t.Errorf("health: %s, %v", body, err)
	}
	if _, err := c.Rotate(t.Context(), "blue"); err != nil || s.rotated != "blue" {
		t.Errorf("rotated %q, %v", s.rotated, err)
	}
	_, err = c.Rotate(t.Context(), "green")
	says(t, err, "404", ErrNoCluster.Error())
	if keys, err := c.RotateTokenKeys(t.Context(), "blue", time.Hour); err != nil || len(keys) != 1 || s.notice != time.Hour {
		t.Errorf("%+v with a notice of %s, %v", keys, s.notice, err)
	}
	_, err = c.RotateTokenKeys(t.Context(), "blue", -time.Second)
	says(t, err, "409", "before now")
	_, err = c.ask(t.Context(), http.MethodPost, "/token-keys/rotate?cluster=blue&notice=soon")
	says(t, err, "400", "notice: ")
	if explanation, err := c.PodIdentity(t.Context(), "blue", "shop", "web"); err != nil || explanation.Pod != "web" {
		t.Errorf("%+v, %v", explanation, err)
	}
	_, err = c.PodIdentity(t.Context(), "blue", "shop", "gone")
	says(t, err, "404", "gone")
	_, err = c.PodIdentity(t.Context(), "blue", "shop", "early")
	says(t, err, "503", "does not run yet")
	_, err = c.FreeManagementEtcd(t.Context())
	says(t, err, "409", "nothing is left of the quota")
	s.ready.Store(true)
	if done, err := c.FreeManagementEtcd(t.Context()); err != nil || done != "400 MiB were freed" {
		t.Errorf("%q, %v", done, err)
	}
	if body, err := c.ask(t.Context(), http.MethodGet, "/readyz"); err != nil || string(body) != "ok\n" {
		t.Errorf("ready: %s, %v", body, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after its end: %v", err)
	}
}

// A socket that cannot be asked says nothing of the service. That none runs must not be said: up would start another one.
func TestSocketThatCannotBeAsked(t *testing.T) {
	dir := newDir(t)
	if err := os.Symlink(dir.Socket(), dir.Socket()); err != nil {
		t.Fatal(err)
	}
	_, err := NewClient(dir).Status(t.Context())
	says(t, err, "asking the service", dir.Socket(), "too many levels of symbolic links")
	refused := &url.Error{Op: "Get", URL: "http://muster/status", Err: &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}}
	if got := unanswered(t.Context(), refused); errors.Is(err, ErrNotRunning) || errors.Is(got, ErrNotRunning) || !errors.Is(got, fs.ErrPermission) {
		t.Errorf("%v; for another user it is %v", err, got)
	}
}

// A service whose queue of connections is full for a moment is asked when there is room.
func TestFullSocket(t *testing.T) {
	dir := newDir(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: dir.Socket()}), unix.Listen(fd, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), dir.Socket())
	defer func() { _ = file.Close() }()
	first, err := new(net.Dialer).DialContext(t.Context(), "unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if _, err := new(net.Dialer).DialContext(t.Context(), "unix", dir.Socket()); !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("the queue is not full: %v", err)
	}
	c := NewClient(dir)
	c.http.Timeout = 50 * time.Millisecond
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrSlow) {
		t.Errorf("while it is full: %v", err)
	}
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler(&asked{}, prometheus.NewRegistry()), ReadHeaderTimeout: time.Minute}
	time.AfterFunc(20*time.Millisecond, func() { _ = server.Serve(listener) })
	defer func() { _ = server.Close() }()
	if _, err := NewClient(dir).Status(t.Context()); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}

// A service that listens and takes its time runs. That it does not must not be said of it: up would start another one.
func TestSlowSocket(t *testing.T) {
	dir := newDir(t)
	c := NewClient(dir)
	c.http.Timeout = 50 * time.Millisecond
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrSlow) { // the kernel takes the connection, and nobody else
		t.Errorf("a service that is stopped: %v", err)
	}
	accepted := make(chan net.Conn, 10)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	if err := (<-accepted).Close(); err != nil { // of the first question
		t.Error(err)
	}
	answers := make(chan error, 1)
	c = NewClient(dir) // with no connection that the first question has left
	c.http.Timeout = time.Minute
	go func() { _, err := c.Status(t.Context()); answers <- err }()
	if err := (<-accepted).Close(); err != nil {
		t.Error(err)
	}
	if err := listener.Close(); err != nil { // a client may try again on a new connection
		t.Error(err)
	}
	for conn := range accepted {
		_ = conn.Close()
	}
	if err := <-answers; !errors.Is(err, ErrNotRunning) {
		t.Errorf("a service that ends: %v", err)
	}
	c = NewClient(dir)
	c.http.Timeout = 50 * time.Millisecond
	partly, err := new(net.ListenConfig).Listen(t.Context(), "unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = partly.Close() }()
	go func() {
		conn, err := partly.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil { // an answer before the question is another fault
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
		}
	}()
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrSlow) {
		t.Errorf("a service that stops in the middle of its answer: %v", err)
	}
}

// Questions about people who look at the console come through whole, and a "no" of the account is told from other errors.
func TestViewers(t *testing.T) {
	dir := newDir(t)
	client := NewClient(dir)
	go func() { _ = Serve(t.Context(), dir.Socket(), &asked{}, prometheus.NewRegistry()) }()
	eventually(t, "an answer", func() bool { _, err := client.Status(t.Context()); return err == nil })
	who, err := client.ProveViewer(t.Context(), viewer.Proof{Audience: "muster-console:a", Token: "good"})
	if err != nil || who.ARN != "arn" {
		t.Errorf("%v, %v", who, err)
	}
	if _, err := client.ProveViewer(t.Context(), viewer.Proof{Audience: "muster-console:a", Token: "bad"}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "not for muster-console:a") {
		t.Errorf("a bad token: %v", err)
	}
	two := []viewer.Question{{Action: "a"}, {Action: "b"}}
	if answers, err := client.DecideViewer(t.Context(), viewer.Decision{Questions: two}); err != nil || len(answers) != 2 {
		t.Errorf("%v, %v", answers, err)
	}
	if _, err := client.DecideViewer(t.Context(), viewer.Decision{Questions: append(two, viewer.Question{})}); err == nil {
		t.Error("two answers to three questions are taken")
	}
	if refusal, err := client.RequestOfViewer(t.Context(), viewer.Request{Action: "CreateCluster", Input: []byte(`{"n":1}`)}); err != nil || refusal.Code != "CreateCluster" || refusal.Message != `{"n":1}` {
		t.Errorf("%v, %v", refusal, err)
	}
}
