// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	awsaccount "muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/cloud/events"
	"muster.dev/muster/internal/cloud/sqs"
)

// interruptionPattern are the events that Karpenter's guide has rules for.
const interruptionPattern = `{"source":["aws.ec2","aws.health"],"detail-type":["AWS Health Event","EC2 Spot Instance Interruption Warning","EC2 Instance Rebalance Recommendation","EC2 Instance State-change Notification"]}`

// interruptionRetention is how long a message is kept, in seconds, as in Karpenter's guide.
const interruptionRetention = "300"

// addInterruptions adds the controller that makes a queue and a rule for each cluster whose control plane runs Karpenter, by
// which Karpenter hears of interruptions. Both go with spec.compute, or with the cluster. Changes by people are
// taken back.
func addInterruptions(mgr manager.Manager, management client.Client, region string) error {
	ofRecord := func(_ context.Context, object client.Object) []reconcile.Request {
		namespace := object.GetLabels()[v1alpha1.LabelCluster]
		if namespace == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: namespace}}}
	}
	err := builder.ControllerManagedBy(mgr).Named("cluster-interruptions").
		For(&v1alpha1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.AWSRecord{}, handler.EnqueueRequestsFromMapFunc(ofRecord)).
		Complete(&interruptions{cached: mgr.GetClient(), management: management, region: region, now: time.Now})
	if err != nil {
		return fmt.Errorf("adding the controller of clusters' interruption queues: %w", err)
	}
	return nil
}

type interruptions struct {
	cached     client.Reader
	management client.Client
	region     string
	now        func() time.Time
}

// Reconcile implements [reconcile.Reconciler].
func (i *interruptions) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var cluster v1alpha1.Cluster
	err := i.cached.Get(ctx, request.NamespacedName, &cluster)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading cluster %s: %w", request.Name, err)
	}
	name := v1alpha1.ClusterKarpenterRole(request.Namespace)
	if err != nil || !cluster.Spec.Compute.On() || !cluster.DeletionTimestamp.IsZero() {
		if err := events.Forget(ctx, i.management, name, request.Namespace); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, sqs.Forget(ctx, i.management, name, request.Namespace)
	}
	queue := arn.ARN{Partition: "aws", Service: sqs.Service, Region: i.region, Account: awsaccount.DefaultID, Resource: name}
	rule := arn.ARN{Partition: "aws", Service: "events", Region: i.region, Account: awsaccount.DefaultID, Resource: "rule/" + name}
	policy, err := interruptionPolicy(queue, rule)
	if err != nil {
		return reconcile.Result{}, err
	}
	kept := sqs.Kept{Name: name, Namespace: request.Namespace, Policy: policy, Attributes: map[string]string{"MessageRetentionPeriod": interruptionRetention}}
	if err := sqs.Keep(ctx, i.management, kept, i.now()); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, events.Keep(ctx, i.management, events.Kept{
		Name: name, Namespace: request.Namespace, Pattern: interruptionPattern, Queue: queue, Description: "Interruptions for Karpenter in the control plane of cluster " + cluster.Spec.Name,
	})
}

// interruptionPolicy lets EventBridge send for one rule. Nobody else sends, whatever the sender's own policies say: a message
// ends machines.
func interruptionPolicy(queue, rule arn.ARN) (string, error) {
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []map[string]any{
		{
			"Sid": "Rule", "Effect": "Allow", "Principal": map[string]string{"Service": events.Principal}, "Action": "sqs:SendMessage", "Resource": queue.String(),
			"Condition": map[string]any{"ArnEquals": map[string]string{"aws:SourceArn": rule.String()}},
		},
		{
			"Sid": "NobodyElse", "Effect": "Deny", "Principal": "*", "Action": "sqs:SendMessage", "Resource": queue.String(),
			"Condition": map[string]any{"ArnNotEquals": map[string]string{"aws:SourceArn": rule.String()}},
		},
	}})
	if err != nil {
		return "", fmt.Errorf("writing the policy of queue %s: %w", queue.Resource, err)
	}
	return string(text), nil
}
