// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// mortal is a client whose writes end the life of who makes them: each write before it is done at the first attempt, and right after it
// at the second. A write that is made again, because nobody heard that it was done, is let pass.
type mortal struct {
	client.Client

	mu    sync.Mutex
	tries map[string]int
	kills int
}

// life is a service from its start until it is killed.
type life struct {
	end  context.CancelFunc
	over atomic.Bool
}

type lifeKey struct{}

var errKilled = errors.New("the service is killed")

// write does a write of an object, or ends the life, or both.
func (m *mortal) write(ctx context.Context, verb string, object client.Object, do func() error) error {
	l, _ := ctx.Value(lifeKey{}).(*life)
	if l == nil {
		return do()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.over.Load() {
		return errKilled // a killed service writes nothing
	}
	key, again := keyOf(verb, object)
	named := verb + " " + object.GetName() // an object whose content has the time is another one at each attempt
	m.tries[key]++
	if m.tries[named]++; !again && (m.tries[key] > 2 || m.tries[named] > 8) {
		return do()
	}
	l.over.Store(true)
	defer l.end()
	m.kills++
	if m.tries[key]%2 == 0 {
		_ = do() // nobody hears of it
	}
	return errKilled
}

// keyOf says which write it is, and whether each next one of the same key is another write: an object that is made has a random name,
// and what is written of a stack is sealed anew.
func keyOf(verb string, object client.Object) (key string, again bool) {
	kind := fmt.Sprintf("%s %T", verb, object)
	if _, ok := object.(*v1alpha1.Stack); ok || verb == "create" {
		return kind, true
	}
	plain := object.DeepCopyObject().(client.Object)
	plain.SetResourceVersion("")
	raw, err := json.Marshal(plain)
	if err != nil {
		raw = nil
	}
	return kind + " " + object.GetName() + " " + string(raw), false
}

func (m *mortal) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return m.write(ctx, "create", object, func() error { return m.Client.Create(ctx, object, options...) })
}

func (m *mortal) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return m.write(ctx, "update", object, func() error { return m.Client.Update(ctx, object, options...) })
}

func (m *mortal) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return m.write(ctx, "patch", object, func() error { return m.Client.Patch(ctx, object, patch, options...) })
}

func (m *mortal) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return m.write(ctx, "delete", object, func() error { return m.Client.Delete(ctx, object, options...) })
}

// lives starts the service again and again until a stack is in one of the statuses of an end, and returns that.
func (s *stacked) lives(name string) string {
	s.t.Helper()
	for range 4000 {
		l := &life{}
		ctx, end := context.WithCancel(context.WithValue(s.t.Context(), lifeKey{}, l))
		l.end = end
		var group sync.WaitGroup
		for _, loop := range s.loops {
			group.Go(func() { loop(ctx) })
		}
		for ctx.Err() == nil {
			if status := s.status(name); !strings.HasSuffix(status, "_IN_PROGRESS") {
				end()
				group.Wait()
				return status
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		group.Wait()
	}
	_, events := s.order(s.admin, "DescribeStackEvents", "StackName", name)
	s.t.Fatalf("the stack does not end: %s", events)
	return ""
}

// status is that of a stack, or the refusal if there is none.
func (s *stacked) status(name string) string {
	s.t.Helper()
	_, body := s.order(s.admin, "DescribeStacks", "StackName", name)
	if found := regexp.MustCompile(`<StackStatus>([A-Z_]+)</StackStatus>`).FindStringSubmatch(body); found != nil {
		return found[1]
	}
	return body
}

// The service is killed before and after each single write of a creation, an update and a deletion, its own and those of the actions
// that it calls: nothing is made twice, told twice or left.
func TestEachStepIsKilled(t *testing.T) {
	s := &stacked{}
	c := config(t)
	c.Run = func(f func(context.Context)) { s.loops = append(s.loops, f) }
	var killer *mortal
	s.served = serveOf(t, c, func(c client.Client) client.Client {
		s.management, killer = c, &mortal{Client: c, tries: map[string]int{}}
		return killer
	})
	world, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.controllers(world) })
	defer group.Wait()
	defer stop()

	status, body := s.order(s.admin, "CreateStack", "StackName", "Net", "TemplateBody", network, "Capabilities.member.1", "CAPABILITY_IAM")
	if status != 200 {
		t.Fatal(status, body)
	}
	id := regexp.MustCompile(`arn:aws:cloudformation:[^<]*`).FindString(body)
	if got := s.lives("Net"); got != "CREATE_COMPLETE" {
		_, events := s.order(s.admin, "DescribeStackEvents", "StackName", "Net")
		t.Fatal(got, events)
	}
	s.eachIsThereOnce()
	_, events := s.order(s.admin, "DescribeStackEvents", "StackName", "Net")
	seen := map[string]bool{}
	for event := range strings.SplitSeq(events, "<member>") {
		found := regexp.MustCompile(`<LogicalResourceId>(\w+)</LogicalResourceId>`).FindStringSubmatch(event)
		if found == nil || !strings.Contains(event, "<ResourceStatus>CREATE_COMPLETE<") {
			continue
		}
		if seen[found[1]] {
			t.Errorf("%s is told to be complete twice: %s", found[1], events)
		}
		seen[found[1]] = true
	}
	if len(seen) < 2 {
		t.Errorf("the events are %s", events)
	}
	made := killer.kills
	if status, body = s.order(s.admin, "UpdateStack", "StackName", "Net", "UsePreviousTemplate", "true", "Capabilities.member.1", "CAPABILITY_IAM", "Parameters.member.1.ParameterKey", "Name", "Parameters.member.1.ParameterValue", "second"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.lives("Net"); got != "UPDATE_COMPLETE" {
		_, events = s.order(s.admin, "DescribeStackEvents", "StackName", "Net")
		t.Fatal(got, events)
	}
	s.eachIsThereOnce()
	changed := killer.kills
	if status, body = s.order(s.admin, "DeleteStack", "StackName", "Net"); status != 200 {
		t.Fatal(status, body)
	}
	if got := s.lives(id); got != "DELETE_COMPLETE" {
		_, events = s.order(s.admin, "DescribeStackEvents", "StackName", id)
		t.Fatal(got, events)
	}
	s.nothingLeft()
	t.Logf("killed %d times in the creation, %d in the update, %d in the deletion", made, changed-made, killer.kills-changed)
	if made < 50 || changed-made < 4 || killer.kills-changed < 20 {
		t.Error("that is not each step")
	}
}

// eachIsThereOnce fails the test if a resource of the template network is not there once.
func (s *stacked) eachIsThereOnce() {
	s.t.Helper()
	for request, trace := range map[string]string{
		"ec2 DescribeVpcs": "<vpcId>", "ec2 DescribeInternetGateways": "<internetGatewayId>", "ec2 DescribeAddresses": "<allocationId>",
		"ec2 DescribeLaunchTemplates": "<launchTemplateId>", "ec2 DescribeSubnets": "<subnetId>", "ec2 DescribeNatGateways": "<natGatewayId>", "iam ListRoles": "<RoleName>Net-Role",
	} {
		if _, body := s.send(s.t.Context(), s.admin, request); strings.Count(body, trace) != 1 {
			s.t.Errorf("%s: %s is there %d times: %s", request, trace, strings.Count(body, trace), body)
		}
	}
}
