// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	awsaccount "muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/events"
	"muster.dev/muster/internal/cloud/queuestore"
	"muster.dev/muster/internal/cloud/sqs"
	"muster.dev/muster/internal/iam/iampolicy"
)

const interruptionsOfBlue = "muster-karpenter-blue"

// interruptionWorld is a management plane in memory, with the controller of interruption queues.
type interruptionWorld struct {
	*interruptions
	t   *testing.T
	now time.Time
}

func newInterruptionWorld(t *testing.T, objects ...client.Object) *interruptionWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	w := &interruptionWorld{t: t, now: time.Unix(1_800_000_000, 0)}
	w.interruptions = &interruptions{cached: api, management: api, region: "eu-west-1", now: func() time.Time { return w.now }}
	return w
}

func clusterWithCompute(on bool) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}}
	c.Spec.Name, c.Spec.Compute = "blue", &v1alpha1.ClusterCompute{Enabled: on}
	return c
}

func (w *interruptionWorld) reconcile() error {
	_, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "blue", Name: "blue"}})
	return err
}

// records are the records of queues and rules, by their names.
func (w *interruptionWorld) records() map[string]*v1alpha1.AWSRecord {
	w.t.Helper()
	var all v1alpha1.AWSRecordList
	if err := w.management.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	found := map[string]*v1alpha1.AWSRecord{}
	for i := range all.Items {
		found[all.Items[i].Spec.Type+" "+all.Items[i].Spec.Name] = &all.Items[i]
	}
	return found
}

// delivers asks the queue to take a message of a rule.
func (w *interruptionWorld) delivers(rule string) error {
	w.t.Helper()
	same := func(policy string) (string, error) { return policy, nil }
	queues, err := sqs.New(sqs.Config{
		Account: awsresource.Account{Management: w.management, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: w.region},
		Store:   queuestore.New(w.t.TempDir(), w.interruptions.now), Bind: same, Show: func(policy string) string { return policy }, Now: w.interruptions.now,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	of := func(service, resource string) arn.ARN {
		return arn.ARN{Partition: "aws", Service: service, Region: w.region, Account: awsaccount.DefaultID, Resource: resource}
	}
	return queues.Deliver(w.t.Context(), of("sqs", interruptionsOfBlue), sqs.From{Principal: events.Principal, ARN: of("events", "rule/"+rule)}, "{}")
}

// A queue takes messages of its own rule, and of nobody else, whatever the sender's own policies allow.
func TestInterruptionQueue(t *testing.T) {
	t.Parallel()
	w := newInterruptionWorld(t, clusterWithCompute(true))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := w.delivers(interruptionsOfBlue); err != nil {
		t.Errorf("its own rule: %v", err)
	}
	if err := w.delivers("forged"); !errors.Is(err, sqs.ErrRefused) {
		t.Errorf("another rule: %v", err)
	}
	queue := arn.ARN{Partition: "aws", Service: "sqs", Region: w.region, Account: awsaccount.DefaultID, Resource: interruptionsOfBlue}
	text, err := interruptionPolicy(queue, arn.ARN{Partition: "aws", Service: "events", Region: w.region, Account: awsaccount.DefaultID, Resource: "rule/" + interruptionsOfBlue})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := iampolicy.Parse(iampolicy.OfResource, text)
	if err != nil {
		t.Fatal(err)
	}
	for action, want := range map[string]bool{"sqs:SendMessage": true, "sqs:ReceiveMessage": false} {
		caller := iampolicy.Caller{ID: "AIDA1", Account: awsaccount.DefaultID, ARN: arn.ARN{Partition: "aws", Service: "iam", Account: awsaccount.DefaultID, Resource: "user/admin"}}
		d := policy.Evaluate(iampolicy.Request{Caller: caller, Action: action, Resource: queue.String(), Context: iampolicy.NewContext(caller, iampolicy.Facts{Now: w.now, Secure: true, Region: w.region})})
		if denied := d.Verdict == iampolicy.Deny; denied != want {
			t.Errorf("%s by a user: %v (%s)", action, d.Verdict, d.Reason)
		}
	}
}

// The queue and the rule come with spec.compute and go with it, each time that the controller looks.
func TestInterruptionsComeAndGo(t *testing.T) {
	t.Parallel()
	const queue, rule = "sqs-queue " + interruptionsOfBlue, "events-rule " + interruptionsOfBlue
	for name, end := range map[string]func(context.Context, client.Client, *v1alpha1.Cluster) error{
		"switched off": func(ctx context.Context, api client.Client, c *v1alpha1.Cluster) error {
			c.Spec.Compute.Enabled = false
			return api.Update(ctx, c)
		},
		"being deleted": func(ctx context.Context, api client.Client, c *v1alpha1.Cluster) error { return api.Delete(ctx, c) },
		"gone": func(ctx context.Context, api client.Client, c *v1alpha1.Cluster) error {
			c.Finalizers = nil
			return errors.Join(api.Update(ctx, c), api.Delete(ctx, c))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clusterWithCompute(true)
			c.Finalizers = []string{"muster.dev/test"}
			w := newInterruptionWorld(t, c)
			var versions []string
			for range 2 {
				if err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
				w.now = w.now.Add(time.Minute)
				versions = append(versions, w.records()[queue].ResourceVersion+" "+w.records()[rule].ResourceVersion)
			}
			if versions[0] != versions[1] {
				t.Errorf("nothing had changed, and was written: %v", versions)
			}
			if err := w.management.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				t.Fatal(err)
			}
			if err := end(t.Context(), w.management, c); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			if left := w.records(); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// Changes by people are taken back, and a queue or a rule that people made stays as it is.
func TestInterruptionsOfPeople(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqs-queue ", "events-rule "} {
		w := newInterruptionWorld(t, clusterWithCompute(true))
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		made := w.records()[kind+interruptionsOfBlue]
		changed := made.DeepCopy()
		changed.Spec.Data.Raw = map[string][]byte{
			"sqs-queue ": []byte(`{"messages":"00000000-0000-4000-8000-000000000000","modified":1}`), "events-rule ": []byte(`{"pattern":"{}","state":"DISABLED"}`),
		}[kind]
		if err := w.management.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if err := w.delivers(interruptionsOfBlue); err != nil {
			t.Errorf("%safter somebody changed it: %v", kind, err)
		}
		theirs := w.records()[kind+interruptionsOfBlue]
		if kind == "events-rule " && string(theirs.Spec.Data.Raw) != string(made.Spec.Data.Raw) {
			t.Errorf("the rule is %s, and was %s", theirs.Spec.Data.Raw, made.Spec.Data.Raw)
		}
		theirs.Labels = nil
		if err := w.management.Update(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		if err := w.reconcile(); !errors.Is(err, sqs.ErrForeign) && !errors.Is(err, events.ErrForeign) {
			t.Errorf("%sof somebody else: %v", kind, err)
		}
		if err := w.management.Delete(t.Context(), clusterWithCompute(true)); err != nil {
			t.Fatal(err)
		}
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if left := w.records(); len(left) != 1 || left[kind+interruptionsOfBlue] == nil {
			t.Errorf("left are %v", left)
		}
	}
}
