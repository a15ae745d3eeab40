// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/statedir"
)

// newWebhook is a cluster whose webhook treats connections as a function does. It counts them.
func newWebhook(t *testing.T, name string, treat func(net.Conn)) (Cluster, *atomic.Int32) {
	t.Helper()
	c := component.Config{Dir: statedir.Dir(t.TempDir()).Cluster(name), Places: portplan.Ports{}.Places(), Network: clusternetworktest.Network()}
	c.VPC, c.Cluster.Spec.Name, c.Cluster.Spec.Network.ServiceCIDR = true, name, "10.100.0.0/16"
	credentials, err := component.Credentials(c)
	if err == nil {
		err = os.MkdirAll(c.Dir.PKI(), 0o700)
	}
	if err == nil {
		_, err = rotator.NewKeys(authority.NewStore(c.Dir.PKI())).Ensure(credentials, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c.Places.PodWebhook = component.At(listener.Addr().(*net.TCPAddr).AddrPort())
	count := new(atomic.Int32)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			treat(conn)
		}
	}()
	return Cluster{Specs: c, Webhook: podidentity.NewWebhook(c)}, count
}

// TestAWebhookThatHangsDelaysNoOther tells another one again and again while the first takes a connection and is silent.
func TestAWebhookThatHangsDelaysNoOther(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hangs, asked := newWebhook(t, "hangs", func(conn net.Conn) { t.Cleanup(func() { _ = conn.Close() }) })
	refuses, tries := newWebhook(t, "refuses", func(conn net.Conn) { _ = conn.Close() })
	p := NewPods(Clusters{Running: func() []Cluster { return []Cluster{{}, hangs, refuses} }, Log: slog.New(slog.DiscardHandler)}, nil, fake.NewClientBuilder().WithScheme(scheme).Build())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	for _, run := range []func(context.Context){p.Associations.Run, p.TellWebhooks} {
		go func() { run(ctx); ended <- struct{}{} }()
	}
	t.Cleanup(func() { cancel(); <-ended; <-ended })
	for deadline := time.Now().Add(time.Minute); tries.Load() < 4 || asked.Load() == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("one is asked %d times, the other %d times", asked.Load(), tries.Load())
		}
		<-time.After(2 * time.Millisecond)
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("the other waited until the one that hangs was asked %d times", got)
	}
}

// TestAFaultIsSaidOnce says it again after the webhook was told in between.
func TestAFaultIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var problem error
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wake := make(chan struct{}, 1)
		go keepTold(ctx, slog.New(slog.NewTextHandler(&log, nil)), wake, func(context.Context) error { return problem })
		for _, step := range []struct {
			problem error
			said    int // in all
		}{
			{nil, 0},
			{podidentity.ErrNotReady, 0},
			{syscall.ECONNREFUSED, 0},
			{errors.New("it answers 500"), 1},
			{syscall.ECONNREFUSED, 1},
			{errors.New("it answers 500"), 1},
			{nil, 1},
			{errors.New("it answers 500"), 2},
			{errors.New("it answers 403"), 3},
		} {
			problem = step.problem
			wake <- struct{}{}
			time.Sleep(2 * associationRetry) //nolint:forbidigo // in a synctest bubble it takes no time
			synctest.Wait()
			if got := strings.Count(log.String(), "not told"); got != step.said {
				t.Errorf("%v: %d lines, want %d:\n%s", step.problem, got, step.said, log.String())
			}
		}
		cancel()
		synctest.Wait()
	})
}
