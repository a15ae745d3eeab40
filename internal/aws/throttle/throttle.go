// SPDX-License-Identifier: Apache-2.0

// Package throttle limits the requests of each principal: a token bucket for every service and class of actions.
//
// A principal is a user or a role; all sessions of a role share its buckets, and so do the access keys of a user. AWS's
// buckets (EC2: 100 requests at once and 20 a second for reads, 50 and 5 for changes) are shared by an account's tools;
// these are larger, because a Terraform run, an autoscaler and a test suite may be one principal here, and small enough
// that none of them delays anybody else.
package throttle

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/platform/lru"
)

// maxBuckets bounds what is remembered. A bucket that is dropped starts full again: callers are known before they have
// one, so it takes as many users and roles to push others' out.
const maxBuckets = 8192

// Class is a class of actions that share a bucket.
type Class uint8

// The classes.
const (
	Read   Class = iota + 1 // changes nothing
	Write                   // changes objects
	Launch                  // makes processes: clusters, machines
)

// Bucket is the size of a bucket and how fast it fills.
type Bucket struct {
	Burst     int
	PerSecond float64
}

// BucketOf is the bucket of a class.
func BucketOf(class Class) Bucket {
	switch class {
	case Read:
		return Bucket{Burst: 400, PerSecond: 100}
	case Launch:
		return Bucket{Burst: 50, PerSecond: 5}
	default:
		return Bucket{Burst: 200, PerSecond: 50}
	}
}

// ClassOf is the class of an action.
func ClassOf(service, action string) Class {
	switch service + ":" + action {
	case "eks:CreateCluster", "eks:CreateNodegroup", "eks:UpdateNodegroupVersion", "ec2:RunInstances", "ec2:CreateFleet", "autoscaling:CreateAutoScalingGroup":
		return Launch
	}
	for _, verb := range []string{"Describe", "List", "Get", "Simulate"} {
		if strings.HasPrefix(action, verb) {
			return Read
		}
	}
	return Write
}

// Limiter has the buckets. It is safe for use by many at once.
type Limiter struct {
	mu      sync.Mutex
	buckets *lru.Map[key, *rate.Limiter]
}

type key struct {
	principal, service string
	class              Class
}

// New makes a Limiter whose buckets are full.
func New() *Limiter { return &Limiter{buckets: lru.New[key, *rate.Limiter](maxBuckets)} }

// Allow takes one token of a principal's bucket. The error is what the service says when there is none.
func (l *Limiter) Allow(principal, service, action string, now time.Time) error {
	class := ClassOf(service, action)
	if l.take(key{principal, service, class}, now) {
		return nil
	}
	return refusal(service)
}

func (l *Limiter) take(k key, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets.Get(k)
	if !ok {
		size := BucketOf(k.class)
		bucket = rate.NewLimiter(rate.Limit(size.PerSecond), size.Burst)
		l.buckets.Put(k, bucket)
	}
	return bucket.AllowN(now, 1)
}

// refusal is what makes an SDK wait and ask again, in each service's words.
func refusal(service string) error {
	switch service {
	case "ec2":
		return awsfault.Errorf("RequestLimitExceeded", "Request limit exceeded.").WithStatus(503)
	case "eks", "eks-auth", "arc-zonal-shift", "elasticfilesystem":
		return awsfault.Errorf("ThrottlingException", "Rate exceeded").WithStatus(429)
	case "autoscaling", "elasticloadbalancing", "elasticloadbalancingv2", "sts", "iam":
		return awsfault.Errorf("Throttling", "Rate exceeded")
	case "tagging":
		return awsfault.Errorf("ThrottledException", "Rate exceeded")
	default:
		return awsfault.Errorf("ThrottlingException", "Rate exceeded")
	}
}
