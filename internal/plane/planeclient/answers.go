// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// What an API server answers before it is ready. /readyz waits until it has written the roles of its RBAC, which takes
// it more than a second; the service is not a subject of RBAC (system:masters), and has that second for what it writes
// itself.
const (
	kindsPath   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=1"
	systemPath  = "/api/v1/namespaces/kube-system" // the API server of a cluster makes it, for others to put objects into
	defaultPath = "/api/v1/namespaces/default"     // and this one after it
)

// AwaitManagement waits until the management plane takes definitions of kinds from the service. The error is the
// context's, or says that the files of the connection cannot be read.
func AwaitManagement(ctx context.Context, connection *rest.Config) error {
	return answers(ctx, connection, kindsPath)
}

// AwaitCluster waits until a cluster's API server takes definitions of kinds from the service, and objects in the
// namespaces that every cluster has. The errors are those of AwaitManagement.
func AwaitCluster(ctx context.Context, connection *rest.Config) error {
	return answers(ctx, connection, kindsPath, systemPath, defaultPath)
}

const (
	answersInterval = 25 * time.Millisecond  // between two questions at first,
	answersSeldom   = 500 * time.Millisecond // and when it takes long
	answerWait      = 2 * time.Second        // for one answer
)

// answers waits until an API server gives the service all of the paths. It may not run yet.
func answers(ctx context.Context, connection *rest.Config, paths ...string) error {
	transport, err := rest.TransportFor(connection)
	if err != nil {
		return fmt.Errorf("asking %s: %w", connection.Host, err)
	}
	asker := &http.Client{Transport: transport, Timeout: answerWait}
	defer asker.CloseIdleConnections()
	wait := answersInterval
	for len(paths) > 0 {
		if answered(ctx, asker, connection.Host+paths[0]) {
			paths = paths[1:]
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		wait = min(wait+wait/50, answersSeldom)
	}
	return nil
}

func answered(ctx context.Context, asker *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := asker.Do(request)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection is used again
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
