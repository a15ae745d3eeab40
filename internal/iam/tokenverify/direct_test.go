// SPDX-License-Identifier: Apache-2.0

package tokenverify_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// wire is an STS of which each byte is said by a test.
type wire struct {
	*ststest.STS
	connections, questions atomic.Int64
	said                   atomic.Int64 // questions to which all that there is to say has arrived at the one that asks
}

// onWire has say answer each question, with how many there were on this connection before. It hangs up when say returns
// false.
func onWire(t *testing.T, say func(c net.Conn, before int) bool) *wire {
	t.Helper()
	w := &wire{STS: ststest.New(t)}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: w.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	w.URL = "https://" + listener.Addr().String()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			w.connections.Add(1)
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				defer func() { _ = c.Close() }()
				reader := bufio.NewReader(c)
				for before := 0; ; before++ {
					r, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					_ = r.Body.Close()
					w.questions.Add(1)
					goesOn := say(c, before)
					if !goesOn {
						_ = c.Close()
					} else if err := arrived(c); err != nil {
						t.Error(err)
					}
					w.said.Add(1)
					if !goesOn {
						return
					}
				}
			}()
		}
	}()
	return w
}

// arrived waits until the other end's kernel has all that was written: only then can somebody who looks find it.
func arrived(c net.Conn) error {
	secured, ok := c.(*tls.Conn)
	if !ok {
		return fmt.Errorf("%T is not TLS", c)
	}
	tcp, ok := secured.NetConn().(*net.TCPConn)
	if !ok {
		return fmt.Errorf("%T is not TCP", secured.NetConn())
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	for {
		under, failed := 0, error(nil)
		closed := raw.Control(func(fd uintptr) { under, failed = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) }) != nil // the other end has hung up
		if closed || failed != nil || under == 0 {
			return failed
		}
		<-time.After(time.Millisecond)
	}
}

// saysIts is STS's answer about a user.
func saysIts(name string) string {
	return fmt.Sprintf(`{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"111122223333","Arn":"arn:aws:iam::111122223333:user/%s","UserId":"AIDA1"}}}`, name)
}

func http200(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// tries are what one that asks observed: the statuses of answers, 0 for none.
type tries struct {
	mu       sync.Mutex
	statuses []int
}

func (o *tries) observe(c *tokenverify.RemoteConfig) {
	c.Observe = func(one tokenverify.Observation) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.statuses = append(o.statuses, one.Status)
	}
}

func TestConnectionsAreUsedAgainIfTheyCanBe(t *testing.T) {
	key := ststest.User("alice", 1)
	const asked = 5
	for _, tc := range []struct {
		name string
		say  func(c net.Conn, before int) bool
		// connections that five questions one after the other take, and how many were asked on the wire
		connections, questions int64
	}{
		{"a plain answer", func(c net.Conn, _ int) bool { _, _ = c.Write([]byte(http200(saysIts("alice")))); return true }, 1, asked},
		{"chunks", func(c net.Conn, _ int) bool {
			body := saysIts("alice")
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 10, body[:10], len(body)-10, body[10:])
			return true
		}, 1, asked},
		{"in pieces", func(c net.Conn, _ int) bool {
			for one := range strings.SplitSeq(http200(saysIts("alice")), ":") {
				_, _ = c.Write([]byte(one))
				if !strings.HasSuffix(one, "}}}") {
					_, _ = c.Write([]byte(":"))
				}
			}
			return true
		}, 1, asked},
		{"Connection: close", func(c net.Conn, _ int) bool {
			_, _ = c.Write([]byte(strings.Replace(http200(saysIts("alice")), "\r\n", "\r\nConnection: close\r\n", 1)))
			return true
		}, asked, asked},
		{"HTTP/1.0", func(c net.Conn, _ int) bool {
			_, _ = c.Write([]byte("HTTP/1.0 200 OK\r\n\r\n" + saysIts("alice")))
			return false
		}, asked, asked},
		{"it hangs up after each", func(c net.Conn, _ int) bool {
			_, _ = c.Write([]byte(http200(saysIts("alice"))))
			return false
		}, asked, asked},
		{"it hangs up when it is asked again", func(c net.Conn, before int) bool {
			if before == 0 {
				_, _ = c.Write([]byte(http200(saysIts("alice"))))
			}
			return before == 0
		}, asked, 2*asked - 1},
		{"another answer at once", func(c net.Conn, _ int) bool {
			_, _ = c.Write([]byte(http200(saysIts("alice")) + http200(saysIts("admin"))))
			return true
		}, asked, asked},
		{"another answer in another record", func(c net.Conn, _ int) bool {
			_, _ = c.Write([]byte(http200(saysIts("alice"))))
			_, _ = c.Write([]byte(http200(saysIts("admin"))))
			return true
		}, asked, asked},
		{"another answer later", func(c net.Conn, _ int) bool {
			_, _ = c.Write([]byte(http200(saysIts("alice"))))
			<-time.After(5 * time.Millisecond)
			_, _ = c.Write([]byte(http200(saysIts("admin"))))
			return true
		}, asked, asked},
		{"a large header and another answer", func(c net.Conn, _ int) bool {
			_, _ = c.Write([]byte(strings.Replace(http200(saysIts("alice")), "\r\n", "\r\nX: "+strings.Repeat("x", 9000)+"\r\n", 1) + http200(saysIts("admin"))))
			return true
		}, asked, asked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, seen := onWire(t, tc.say), &tries{}
			r := remote(t, w.STS, seen.observe)
			for n := range asked {
				id, err := r.Verify(t.Context(), token(t, key))
				if err != nil || id.ARN.String() != "arn:aws:iam::111122223333:user/alice" {
					t.Fatalf("question %d: %s, %v", n+1, id.ARN, err)
				}
				for w.said.Load() < w.questions.Load() { // the remaining answers of the other end come
					<-time.After(time.Millisecond)
				}
			}
			if c, q := w.connections.Load(), w.questions.Load(); c != tc.connections || q != tc.questions {
				t.Errorf("%d connections and %d questions; want %d and %d", c, q, tc.connections, tc.questions)
			}
			if fmt.Sprint(seen.statuses) != fmt.Sprint([]int{200, 200, 200, 200, 200}) {
				t.Errorf("the answers were %v", seen.statuses)
			}
		})
	}
}

func TestWhatIsNoAnswerIsNotRead(t *testing.T) {
	key := ststest.User("alice", 1)
	for _, tc := range []struct {
		name, say, says string
		tries           int
	}{
		{"a header without end", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20), "more than", 1},
		{"headers without end", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<18), "more than", 1},
		{"chunks of nothing", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\n{\r\n", 1000), "not STS's", 1},
		{"no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", "it is not HTTP", 1},
		{"HTTP/2", "\x00\x00\x12\x04\x00\x00\x00\x00\x00\r\n\r\n", "it is not HTTP", 1},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\n{}  {", "it is not HTTP", 1},
		{"half of an answer", http200(saysIts("alice"))[:150], "EOF", 2},
		{"nothing", "", "EOF", 2},
		{"100 Continue", "HTTP/1.1 100 Continue\r\n\r\n" + http200(saysIts("alice")), "status 100", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, seen := onWire(t, func(c net.Conn, _ int) bool { _, _ = c.Write([]byte(tc.say)); return false }), &tries{}
			r := remote(t, w.STS, seen.observe)
			r.Admit(key.ID)
			_, err := r.Verify(t.Context(), token(t, key))
			if kind(err) != "unavailable" || !strings.Contains(err.Error(), tc.says) || len(err.Error()) > 300 {
				t.Errorf("got %.400v; want %q", err, tc.says)
			}
			if q := w.questions.Load(); len(seen.statuses) != tc.tries || q != int64(tc.tries) {
				t.Errorf("it was tried %d times with %d questions, want %d", len(seen.statuses), q, tc.tries)
			}
		})
	}
}

func TestWhatIsNoAnswerIsNotAskedForTwice(t *testing.T) {
	key := ststest.User("alice", 1)
	w := onWire(t, func(c net.Conn, before int) bool {
		if before > 0 {
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH\r\n\r\n"))
			return false
		}
		_, _ = c.Write([]byte(http200(saysIts("alice"))))
		return true
	})
	r := remote(t, w.STS, nil)
	if _, err := r.Verify(t.Context(), token(t, key)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Verify(t.Context(), token(t, key)); kind(err) != "unavailable" || !strings.Contains(err.Error(), "it is not HTTP") {
		t.Errorf("got %v", err)
	}
	if q := w.questions.Load(); q != 2 {
		t.Errorf("%d questions, want 2", q)
	}
}

func TestWhoeverGoesAwayIsNotWaitedFor(t *testing.T) {
	key := ststest.User("alice", 1)
	came, hang := make(chan struct{}, 1), make(chan struct{})
	w := onWire(t, func(c net.Conn, before int) bool {
		if before == 0 {
			came <- struct{}{}
			<-hang
		}
		_, _ = c.Write([]byte(http200(saysIts("admin"))))
		return true
	})
	r := remote(t, w.STS, func(c *tokenverify.RemoteConfig) { c.Connections = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := r.Verify(ctx, token(t, key))
		result <- err
	}()
	<-came
	waiting, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := r.Verify(waiting, token(t, key)); kind(err) != "unavailable" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who waits for the one connection gets %v", err)
	}
	cancel()
	select {
	case err := <-result:
		if kind(err) != "unavailable" || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still waits for the answer")
	}
	close(hang)
	if _, err := r.Verify(t.Context(), token(t, key)); err == nil && w.connections.Load() != 2 {
		t.Error("a connection on which an answer is to come was used again")
	}
}

func TestThereAreNoMoreConnectionsThanAllowed(t *testing.T) {
	key := ststest.User("alice", 1)
	s := ststest.New(t, key)
	var now, most atomic.Int64
	s.Fail(func(_ int64, _ http.ResponseWriter, _ *http.Request) bool {
		for at := now.Add(1); ; {
			if before := most.Load(); before >= at || most.CompareAndSwap(before, at) {
				break
			}
		}
		<-time.After(5 * time.Millisecond)
		now.Add(-1)
		return false
	})
	r := remote(t, s, func(c *tokenverify.RemoteConfig) {
		c.Connections, c.Gate = 3, tokenverify.GateConfig{Known: 20, Unknown: 20, PerKey: 20, QueuePerKey: 50}
	})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := r.Verify(t.Context(), token(t, key)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most.Load() > 3 {
		t.Errorf("%d at once, on 3 connections", most.Load())
	}
}
