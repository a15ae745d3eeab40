// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// slow is a management plane whose first patch closes held, and waits until it may go on.
type slow struct {
	client.Client
	hold       sync.Once
	held, goOn chan struct{}
}

func (s *slow) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	s.hold.Do(func() { close(s.held) })
	<-s.goOn // later patches come when it is closed
	return s.Client.Patch(ctx, object, patch, options...)
}

// waits returns when a request waits for the lock of a resource.
func waits(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 8<<20)
	for deadline, tick := time.Now().Add(time.Minute), time.Tick(time.Millisecond); ; <-tick {
		if strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "keylock.(*Locks).Hold(") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no request waits for a lock")
		}
	}
}

// A change that waits for another one is decided by what is true when its turn comes: its sender may have lost the right
// or the key meanwhile.
func TestAChangeThatWaitsIsDecidedInItsTurn(t *testing.T) {
	const (
		all  = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
		vpc  = "vpc-0123456789abcdef0"
		eks  = "eks POST /tags/arn:aws:eks:us-east-1:000000000000:cluster%2Fone {\"tags\":{\"of\":\"NAME\"}}"
		ec2  = "ec2 CreateTags ResourceId.1=" + vpc + "&Tag.1.Key=of&Tag.1.Value=NAME"
		gone = "The security token included in the request is invalid"
	)
	for _, c := range []struct{ name, request, revoke, want string }{
		{"policy, EC2", ec2, "iam DetachUserPolicy UserName=alice&PolicyArn=arn:aws:iam::000000000000:policy/alice", "UnauthorizedOperation"},
		{"policy, EKS", eks, "iam DetachUserPolicy UserName=alice&PolicyArn=arn:aws:iam::000000000000:policy/alice", "AccessDeniedException"},
		{"key, EC2", ec2, "iam UpdateAccessKey UserName=alice&Status=Inactive&AccessKeyId=", "AuthFailure"},
		{"key, EKS", eks, "iam DeleteAccessKey UserName=alice&AccessKeyId=", gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			plane := &slow{held: make(chan struct{}), goOn: make(chan struct{})}
			s := serve(t, func(c client.Client) client.Client { plane.Client = c; return plane })
			slug := v1alpha1.ClusterSlug("one")
			network, cluster := &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: vpc}}, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: slug, Name: slug}, Spec: v1alpha1.ClusterSpec{Name: "one"}}
			for _, object := range []client.Object{network, cluster} {
				if err := plane.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			alice := s.user("alice", all)
			type answer struct {
				status int
				body   string
			}
			first, second := make(chan answer, 1), make(chan answer, 1)
			go func() {
				status, body := s.send(t.Context(), s.admin, strings.Replace(c.request, "NAME", "admin", 1))
				first <- answer{status, body}
			}()
			<-plane.held
			go func() {
				status, body := s.send(t.Context(), alice, strings.Replace(c.request, "NAME", "alice", 1))
				second <- answer{status, body}
			}()
			waits(t)
			revoke := c.revoke
			if strings.HasSuffix(revoke, "=") {
				revoke += alice.AccessKeyID
			}
			if status, body := s.send(t.Context(), s.admin, revoke); status != 200 {
				t.Fatal(revoke, status, body)
			}
			close(plane.goOn)
			if a := <-first; a.status != 200 {
				t.Errorf("the change that others wait for: %d %s", a.status, a.body)
			}
			if a := <-second; a.status != 403 && a.status != 401 || !strings.Contains(a.body, c.want) {
				t.Errorf("what alice asked for before: %d %s, want %s", a.status, a.body, c.want)
			}
			for object, tags := range map[client.Object]*v1alpha1.Tags{network: &network.Spec.Tags, cluster: &cluster.Spec.Tags} {
				if err := plane.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || (*tags)["of"] == "alice" {
					t.Errorf("%s has tags %v, %v", object.GetName(), *tags, err)
				}
			}
		})
	}
}
