// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runtime is the container runtime.
type Runtime interface {
	// Version returns the version of the container runtime, or an error if the runtime does not answer.
	Version(ctx context.Context) (string, error)
	// RemovePods stops and removes every pod that a kubelet has made since some moment, and tells how many there were.
	RemovePods(ctx context.Context, since time.Time) (int, error)
}

// CRI is a runtime that answers at a socket.
type CRI struct{ socket string }

// NewCRI makes a client of the socket; nothing need answer yet.
func NewCRI(socket string) *CRI { return &CRI{socket: socket} }

// podLabel is on each sandbox that a kubelet makes (k8s.io/kubelet/pkg/types).
const podLabel = "io.kubernetes.pod.uid"

// podPatience is how long one pod may take to end. Its containers have been asked already when this begins.
const podPatience = 30 * time.Second

func (c *CRI) connect() (*grpc.ClientConn, error) {
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.socket)
	}
	connection, err := grpc.NewClient("passthrough:///runtime", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer))
	if err != nil {
		return nil, fmt.Errorf("reaching the container runtime: %w", err)
	}
	return connection, nil
}

// Version is the runtime's name and version.
func (c *CRI) Version(ctx context.Context) (string, error) {
	connection, err := c.connect()
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	answer, err := runtimev1.NewRuntimeServiceClient(connection).Version(ctx, &runtimev1.VersionRequest{})
	if err != nil {
		return "", fmt.Errorf("asking the container runtime at %s: %w", c.socket, err)
	}
	return answer.GetRuntimeName() + " " + answer.GetRuntimeVersion(), nil
}

// RemovePods goes on with the others when one cannot be removed. Older ones are of another life of the host, and
// somebody else's.
func (c *CRI) RemovePods(ctx context.Context, since time.Time) (int, error) {
	connection, err := c.connect()
	if err != nil {
		return 0, err
	}
	defer func() { _ = connection.Close() }()
	client := runtimev1.NewRuntimeServiceClient(connection)
	list, err := client.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return 0, fmt.Errorf("listing pods: %w", err)
	}
	removed := 0
	var problems []error
	for _, pod := range list.GetItems() {
		if pod.GetLabels()[podLabel] == "" || !since.IsZero() && pod.GetCreatedAt() < since.UnixNano() {
			continue
		}
		if err := removePod(ctx, client, pod.GetId()); err != nil {
			problems = append(problems, fmt.Errorf("removing pod %s/%s: %w", pod.GetMetadata().GetNamespace(), pod.GetMetadata().GetName(), err))
			continue
		}
		removed++
	}
	return removed, errors.Join(problems...)
}

func removePod(ctx context.Context, client runtimev1.RuntimeServiceClient, id string) error {
	ctx, cancel := context.WithTimeout(ctx, podPatience)
	defer cancel()
	if _, err := client.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return err
	}
	_, err := client.RemovePodSandbox(ctx, &runtimev1.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}
