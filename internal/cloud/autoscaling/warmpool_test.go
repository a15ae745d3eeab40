// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

func TestWarmPool(t *testing.T) {
	w := groupWorld(t)
	about := "&AutoScalingGroupName=" + workers
	if text := w.ask("DescribeWarmPool"+about, 200); strings.Contains(text, "<member>") || strings.Contains(text, "PoolState") {
		t.Errorf("a group without a pool: %s", text)
	}
	w.ask("DeleteWarmPool"+about, 400, "ValidationError", "No warm pool found for Auto Scaling group "+workers)
	for request, says := range map[string]string{
		"&PoolState=Hibernated":                    "cannot hibernate",
		"&PoolState=Asleep":                        "spec.warmPool.poolState",
		"&MinSize=5":                               "must be at most scalingConfig.maxSize, 4",
		"&MaxGroupPreparedCapacity=5":              "must be at most scalingConfig.maxSize, 4",
		"&MaxGroupPreparedCapacity=-2":             "must be 0 or more",
		"&MinSize=3&MaxGroupPreparedCapacity=2":    "must be at most maxGroupPreparedCapacity, 2",
		"&MinSize=1&AutoScalingGroupName=none-one": "no such group",
	} {
		w.ask("PutWarmPool"+about+request, 400, "ValidationError", says)
	}
	if pool := w.nodeGroup().Spec.WarmPool; pool != nil {
		t.Errorf("a refused pool is there: %+v", pool)
	}
	w.ask("PutWarmPool"+about+"&MinSize=1&MaxGroupPreparedCapacity=3&PoolState=Running&InstanceReusePolicy.ReuseOnScaleIn=true", 200)
	w.ask("PutWarmPool"+about+"&MaxGroupPreparedCapacity=-1", 200)
	if pool := w.nodeGroup().Spec.WarmPool; pool == nil || pool.MinSize != 1 || pool.MaxGroupPreparedCapacity != nil || pool.State() != v1alpha1.WarmRunning || !pool.ReuseOnScaleIn {
		t.Errorf("the pool is %+v", pool)
	}
	m := w.machine(instanceA)
	m.Spec.WarmPool, m.Status.Phase = v1alpha1.WarmRunning, v1alpha1.MachineWarmRunning
	if err := w.api.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.ask("DescribeWarmPool"+about, 200, "<InstanceId>"+instanceA+"</InstanceId>", "<LifecycleState>Warmed:Running</LifecycleState>", "<PoolState>Running</PoolState>", "<ReuseOnScaleIn>true</ReuseOnScaleIn>", "<HealthStatus>Healthy</HealthStatus>")
	if text := w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1="+workers, 200, "<WarmPoolSize>1</WarmPoolSize>", "<MinSize>1</MinSize>"); strings.Contains(text, instanceA) {
		t.Errorf("a machine of the pool is in the group: %s", text)
	}
	w.ask("DescribeAutoScalingInstances&InstanceIds.member.1="+instanceA, 200, "Warmed:Running")
	w.ask("TerminateInstanceInAutoScalingGroup&InstanceId="+instanceA+"&ShouldDecrementDesiredCapacity=true", 400, "ValidationError", "is in the warm pool of Auto Scaling group")
	w.ask("SetInstanceProtection"+about+"&InstanceIds.member.1="+instanceA+"&ProtectedFromScaleIn=true", 400, "ValidationError", "is not in InService")
	w.ask("DeleteWarmPool"+about+"&ForceDelete=true", 200)
	if pool := w.nodeGroup().Spec.WarmPool; pool != nil {
		t.Errorf("a deleted pool is there: %+v", pool)
	}
	w.wasAsked("autoscaling:PutWarmPool arn", "autoscaling:DeleteWarmPool arn", "autoscaling:DescribeWarmPool *")
	w.gate.Denies = true
	for _, action := range []string{"PutWarmPool", "DeleteWarmPool", "DescribeWarmPool"} {
		w.ask(action+about, 403, "AccessDenied")
	}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(w.nodeGroup()), &v1alpha1.NodeGroup{}); err != nil {
		t.Error(err)
	}
}
