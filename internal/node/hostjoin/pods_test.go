// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandboxes is a container runtime that has nothing but sandboxes.
type sandboxes struct {
	runtimev1.UnimplementedRuntimeServiceServer
	there   []*runtimev1.PodSandbox
	removed []string
	broken  string // the one that cannot be stopped
}

func (s *sandboxes) ListPodSandbox(context.Context, *runtimev1.ListPodSandboxRequest) (*runtimev1.ListPodSandboxResponse, error) {
	return &runtimev1.ListPodSandboxResponse{Items: s.there}, nil
}

func (s *sandboxes) StopPodSandbox(_ context.Context, in *runtimev1.StopPodSandboxRequest) (*runtimev1.StopPodSandboxResponse, error) {
	if in.GetPodSandboxId() == s.broken {
		return nil, errors.New("it does not end")
	}
	return &runtimev1.StopPodSandboxResponse{}, nil
}

func (s *sandboxes) RemovePodSandbox(_ context.Context, in *runtimev1.RemovePodSandboxRequest) (*runtimev1.RemovePodSandboxResponse, error) {
	s.removed = append(s.removed, in.GetPodSandboxId())
	return &runtimev1.RemovePodSandboxResponse{}, nil
}

func (s *sandboxes) serve(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, s)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

func TestRemovePods(t *testing.T) {
	joined := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	pod := func(id string, created time.Time, labels map[string]string) *runtimev1.PodSandbox {
		return &runtimev1.PodSandbox{Id: id, CreatedAt: created.UnixNano(), Labels: labels, Metadata: &runtimev1.PodSandboxMetadata{Namespace: "default", Name: id}}
	}
	kubelets := map[string]string{podLabel: "u"}
	there := []*runtimev1.PodSandbox{
		pod("old", joined.Add(-time.Second), kubelets), pod("new", joined, kubelets), pod("newer", joined.Add(time.Hour), kubelets), pod("persons", joined.Add(time.Hour), nil),
	}
	for name, tc := range map[string]struct {
		since  time.Time
		broken string
		want   []string
		err    string
	}{
		"a containerd that was there": {since: joined, want: []string{"new", "newer"}},
		"the join's own":              {want: []string{"old", "new", "newer"}},
		"one that does not go":        {since: joined, broken: "new", want: []string{"newer"}, err: "removing pod default/new"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sandboxes{there: there, broken: tc.broken}
			n, err := NewCRI(s.serve(t)).RemovePods(t.Context(), tc.since)
			if n != len(tc.want) || !slices.Equal(s.removed, tc.want) || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("removed %v, %d in all, error %v", s.removed, n, err)
			}
		})
	}
}
