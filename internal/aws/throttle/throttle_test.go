// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfault"
)

var start = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

func spend(l *Limiter, principal, service, action string, now time.Time) int {
	for n := range 10_000 {
		if l.Allow(principal, service, action, now) != nil {
			return n
		}
	}
	return 10_000
}

func TestBuckets(t *testing.T) {
	l := New()
	if n := spend(l, "AIDA1", "ec2", "DescribeInstances", start); n != BucketOf(Read).Burst {
		t.Errorf("%d reads at once", n)
	}
	for name, c := range map[string]struct{ principal, service, action string }{
		"another principal": {"AIDA2", "ec2", "DescribeInstances"},
		"another service":   {"AIDA1", "eks", "DescribeCluster"},
		"another class":     {"AIDA1", "ec2", "CreateTags"},
		"launches":          {"AIDA1", "ec2", "RunInstances"},
	} {
		if err := l.Allow(c.principal, c.service, c.action, start); err != nil {
			t.Errorf("%s is delayed: %v", name, err)
		}
	}
	if err := l.Allow("AIDA1", "ec2", "DescribeVpcs", start); err == nil {
		t.Error("another action of the class has a bucket of its own")
	}
	later := start.Add(time.Second)
	if n := spend(l, "AIDA1", "ec2", "DescribeInstances", later); n != int(BucketOf(Read).PerSecond) {
		t.Errorf("%d reads a second later", n)
	}
	if n := spend(l, "AIDA1", "ec2", "DescribeInstances", start); n != 0 {
		t.Errorf("%d reads when the clock went back", n)
	}
	if n := spend(l, "AIDA1", "ec2", "DescribeInstances", start.Add(time.Hour)); n != BucketOf(Read).Burst {
		t.Errorf("%d reads an hour later", n)
	}
}

func TestRefusals(t *testing.T) {
	for service, want := range map[string]string{
		"ec2": "RequestLimitExceeded 503", "eks": "ThrottlingException 429", "eks-auth": "ThrottlingException 429", "autoscaling": "Throttling 400",
		"ssm": "ThrottlingException 400", "kms": "ThrottlingException 400", "logs": "ThrottlingException 400", "sts": "Throttling 400", "iam": "Throttling 400",
	} {
		l := New()
		spend(l, "AIDA1", service, "Describe", start)
		var fault *awsfault.Error
		if err := l.Allow("AIDA1", service, "Describe", start); !errors.As(err, &fault) || fmt.Sprint(fault.Code, " ", fault.HTTPStatus()) != want {
			t.Errorf("%s: %v, want %s", service, err, want)
		}
	}
}

func TestClasses(t *testing.T) {
	for action, want := range map[string]Class{
		"ec2:DescribeInstances": Read, "eks:ListClusters": Read, "ssm:GetParameter": Read, "iam:SimulatePrincipalPolicy": Read,
		"ec2:CreateVpc": Write, "eks:UpdateClusterConfig": Write, "sts:AssumeRole": Write, "ec2:TerminateInstances": Write,
		"ec2:RunInstances": Launch, "eks:CreateCluster": Launch, "eks:CreateNodegroup": Launch,
	} {
		service, name := action[:3], action[4:]
		if got := ClassOf(service, name); got != want {
			t.Errorf("%s is of class %d, want %d", action, got, want)
		}
	}
	// Actions that launch are on the list of actions: a misspelled action would be a change like others.
	launches := 0
	for _, s := range awsactions.Services() {
		for _, a := range s.Actions {
			if ClassOf(s.Name, a.Name) == Launch {
				launches++
			}
		}
	}
	if launches != 6 {
		t.Errorf("%d actions launch something", launches)
	}
}

// A flood of principals pushes others out and does not grow.
func TestTheMapIsBounded(t *testing.T) {
	l := New()
	for i := range 3 * maxBuckets {
		_ = l.Allow(fmt.Sprint("AIDA", i), "ec2", "DescribeInstances", start)
	}
	if n := l.buckets.Len(); n != maxBuckets {
		t.Errorf("%d buckets", n)
	}
}

func TestManyAtOnce(t *testing.T) {
	l := New()
	var allowed sync.Map
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			n := 0
			for range 1000 {
				if l.Allow("AIDA1", "ec2", "CreateTags", start) == nil {
					n++
				}
			}
			allowed.Store(worker, n)
		})
	}
	all.Wait()
	sum := 0
	allowed.Range(func(_, n any) bool { sum += n.(int); return true })
	if sum != BucketOf(Write).Burst {
		t.Errorf("%d were allowed", sum)
	}
}

func BenchmarkAllow(b *testing.B) {
	l := New()
	now := start
	for b.Loop() {
		now = now.Add(20 * time.Millisecond)
		if err := l.Allow("AIDA1", "ec2", "DescribeInstances", now); err != nil {
			b.Fatal(err)
		}
	}
}
