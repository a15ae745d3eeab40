// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/platform/readcache"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

// ServeCluster answers the API server of a cluster until the context ends. Before somebody asks, nothing is there but a
// socket.
func ServeCluster(ctx context.Context, c component.Config, writes *readcache.Writes, log *slog.Logger) error {
	reviews, err := authorizationclient.NewForConfig(planeclient.Cluster(c))
	if err != nil {
		return fmt.Errorf("making a client of the cluster for reviews of access: %w", err)
	}
	server := New(Config{
		Namespace: c.Dir.Namespace(),
		Readers:   func() (Readers, error) { return readersOf(c, writes) },
		Review: func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			review, err := reviews.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				return authorizationv1.SubjectAccessReviewStatus{}, err
			}
			return review.Status, nil
		},
		Logs:   func(now time.Time) evidence.Logs { return evidence.HostLogs{Dir: c.State, Now: now} },
		Record: readaudit.Of(c.State).Add, Now: time.Now, Log: log,
	})
	listener, err := socketdir.ListenPrivate(ctx, statedir.AccountAPIsSocket(c.State, c.Dir.Namespace()))
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener, c.Credential(component.CredentialAccountAPIs), c.Authority(authority.FrontProxy))
}

// readersOf makes the service's ways to the management plane and the cluster.
func readersOf(c component.Config, writes *readcache.Writes) (Readers, error) {
	scheme, err := planeclient.Scheme()
	if err != nil {
		return Readers{}, err
	}
	management, err := planeclient.NewManagement(planeclient.Management(c.Account, writes), scheme)
	if err != nil {
		return Readers{}, err
	}
	cluster, err := client.New(planeclient.Cluster(c), client.Options{Scheme: scheme})
	if err != nil {
		return Readers{}, fmt.Errorf("making a client of the cluster for explanations: %w", err)
	}
	return Readers{Management: management, Cluster: cluster}, nil
}
