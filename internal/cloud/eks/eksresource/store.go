// SPDX-License-Identifier: Apache-2.0

// Package eksresource has what the resources of EKS have in common: where their objects are, clusters by name and their
// ARNs, what IAM is asked about a cluster, and the words for a status. The actions of each resource are a package beside
// it.
package eksresource

import (
	"context"
	"fmt"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/keylock"
)

// Service is the name that requests to EKS are signed for.
const Service = "eks"

// Store is where the resources of an account's EKS are. All packages of actions share one.
type Store struct {
	awsresource.Account

	// locks have one change at a time of each cluster.
	locks keylock.Locks
}

// Hold waits until nobody else changes a cluster, or what else the key names, and returns what ends the hold.
func (s *Store) Hold(key string) (release func()) { return s.locks.Hold(key) }

// Cluster reads a cluster by its name, and refuses a name that no cluster has.
func (s *Store) Cluster(ctx context.Context, name string) (*v1alpha1.Cluster, error) {
	found, err := s.FindCluster(ctx, name)
	if err == nil && found == nil {
		return nil, eksfault.New(eksfault.NotFound, name, "", "No cluster found for name: %s.", name)
	}
	return found, err
}

// FindCluster returns nil if there is no cluster of the name.
func (s *Store) FindCluster(ctx context.Context, name string) (*v1alpha1.Cluster, error) {
	slug := v1alpha1.ClusterSlug(name)
	found := &v1alpha1.Cluster{}
	err := s.Management.Get(ctx, client.ObjectKey{Namespace: slug, Name: slug}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.Spec.Name != name:
		return nil, nil
	case err != nil:
		return nil, eksfault.Away(fmt.Errorf("reading cluster %s: %w", name, err))
	}
	return found, nil
}

// ClusterARN is the ARN of a cluster.
func (s *Store) ClusterARN(call *awsfront.Call, name string) string {
	return s.ARN(call, "cluster/"+name)
}

// AboutCluster is the cluster as IAM is asked about it. A missing cluster has no tags.
func (s *Store) AboutCluster(ctx context.Context, call *awsfront.Call, name string) ([]awsfront.Target, error) {
	found, err := s.FindCluster(ctx, name)
	if err != nil {
		return nil, err
	}
	target := awsfront.Target{Resource: s.ClusterARN(call, name), Conditions: map[string][]string{}}
	if found != nil {
		awsresource.ResourceTags(target.Conditions, found.Spec.Tags)
	}
	return []awsfront.Target{target}, nil
}

// AboutPart is a part of a cluster, such as a node group, as IAM is asked about it: with the ARN and the tags that find
// returns for it. A missing part, for which find returns an empty ARN, is the resource without tags.
func (s *Store) AboutPart(ctx context.Context, call *awsfront.Call, cluster, resource string, find func(*v1alpha1.Cluster) (arn string, tags v1alpha1.Tags, err error)) ([]awsfront.Target, error) {
	target := awsfront.Target{Resource: s.ARN(call, resource), Conditions: map[string][]string{}}
	of, err := s.FindCluster(ctx, cluster)
	if err != nil || of == nil {
		return []awsfront.Target{target}, err
	}
	arn, tags, err := find(of)
	if err != nil {
		return nil, err
	}
	if arn != "" {
		target.Resource = arn
		awsresource.ResourceTags(target.Conditions, tags)
	}
	return []awsfront.Target{target}, nil
}

var namePattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]*$`)

// IsName reports whether a text can be the name of a cluster or node group of at most so many characters.
func IsName(text string, most int) bool { return namePattern.MatchString(text) && len(text) <= most }

// ChangedAt is when a person changed an object last, as far as it is known.
func ChangedAt(object client.Object) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Subresource == "" && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// Deref is what a member of a request says, or what holds without it.
func Deref[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
