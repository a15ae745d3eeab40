// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/machine/terminated"
)

const (
	account   = "000000000000"
	uid       = "11111111-2222-3333-4444-555555555555"
	workers   = "eks-workers-" + uid
	instanceA = "i-0000000000000000a"
	instanceB = "i-0000000000000000b"
)

type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	handler http.Handler
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gate: &awsfronttest.Gate{}, api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.AutoScalingGroup{}).Build()}
	w.front = awsfronttest.New(t, w.gate, nil)
	var err error
	if err := Register(w.front, awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}, launcherOf(w.api)); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler(service); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request, as "SetDesiredCapacity&DesiredCapacity=2", and compares what comes: a status, and parts of the
// body.
func (w *world) ask(request string, status int, has ...string) string {
	w.t.Helper()
	parameters := url.Values{"Version": {"2011-01-01"}}
	for i, part := range strings.Split(request, "&") {
		name, value, _ := strings.Cut(part, "=")
		if i == 0 {
			name, value = "Action", part
		}
		parameters.Set(name, value)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(parameters.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	text := strings.ReplaceAll(answer.Body.String(), "&apos;", "'")
	if answer.Code != status {
		w.t.Errorf("%s: %d %s, want %d", request, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s: %s, want %s", request, text, part)
		}
	}
	return text
}

func (w *world) wasAsked(wants ...string) {
	w.t.Helper()
	for _, want := range wants {
		if !slices.ContainsFunc(w.gate.Asked, func(asked string) bool { return strings.HasPrefix(asked, want) }) {
			w.t.Errorf("IAM is not asked %s:\n%s", want, strings.Join(w.gate.Asked, "\n"))
		}
	}
}

func (w *world) nodeGroup() *v1alpha1.NodeGroup {
	w.t.Helper()
	g := &v1alpha1.NodeGroup{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: "workers"}, g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) machine(id string) *v1alpha1.Machine {
	w.t.Helper()
	m := &v1alpha1.Machine{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: id}, m); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return m
}

func aMachine(id string, launched bool) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: id, UID: "uid-of-a-machine", Finalizers: []string{v1alpha1.FinalizerMachine}, CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)),
			Annotations: map[string]string{v1alpha1.AnnotationLaunchCause: "increasing the capacity from 0 to 1."},
		},
		Spec: v1alpha1.MachineSpec{ClusterName: "blue", NodeGroup: "workers", NodeGroupUID: uid, Provider: v1alpha1.ProviderLocal, SubnetID: "subnet-0000000000000000a", InstanceType: "m5.large"},
	}
	if launched {
		m.Status = v1alpha1.MachineStatus{
			ProviderID: v1alpha1.ProviderID("eu-west-1a", id), Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}},
			Join: []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(time.Date(2026, 11, 22, 12, 0, 7, 0, time.UTC))}},
		}
	}
	return m
}

func groupWorld(t *testing.T) *world {
	t.Helper()
	cluster := &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue"},
		Status: v1alpha1.ClusterStatus{SubnetIDs: []v1alpha1.SubnetID{"subnet-0000000000000000a", "subnet-0000000000000000b"}},
	}
	node := &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "workers", UID: uid},
		Spec: v1alpha1.NodeGroupSpec{
			Name: "workers", Provider: v1alpha1.ProviderLocal, ScalingConfig: v1alpha1.ScalingConfig{MinSize: 1, MaxSize: 4, DesiredSize: 2}, InstanceTypes: []string{"m5.large"},
		},
	}
	other := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "other", UID: "other"}, Spec: v1alpha1.NodeGroupSpec{Name: "other"}}
	subnet := func(id, zone string) *v1alpha1.Subnet {
		return &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SubnetSpec{AvailabilityZone: zone}}
	}
	return newWorld(t, cluster, node, other, aMachine(instanceA, true), aMachine(instanceB, false), subnet("subnet-0000000000000000a", "eu-west-1a"), subnet("subnet-0000000000000000b", "eu-west-1b"))
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	fine := func(service, action string) bool {
		if service == "autoscaling" {
			return w.front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

func TestDescribeAutoScalingGroups(t *testing.T) {
	w := groupWorld(t)
	text := w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1="+workers, 200, "<AutoScalingGroupName>"+workers+"</AutoScalingGroupName>",
		"<AutoScalingGroupARN>arn:aws:autoscaling:eu-west-1:000000000000:autoScalingGroup:"+uid+":autoScalingGroupName/"+workers+"</AutoScalingGroupARN>",
		"<MinSize>1</MinSize>", "<MaxSize>4</MaxSize>", "<DesiredCapacity>2</DesiredCapacity>", "<VPCZoneIdentifier>subnet-0000000000000000a,subnet-0000000000000000b</VPCZoneIdentifier>",
		"<member>eu-west-1b</member>", "<InstanceType>m5.large</InstanceType>", "<LifecycleState>InService</LifecycleState>", "<LifecycleState>Pending</LifecycleState>", "<HealthStatus>Healthy</HealthStatus>",
		"<Key>k8s.io/cluster-autoscaler/blue</Key>", "<Key>eks:nodegroup-name</Key>", "<ResourceType>auto-scaling-group</ResourceType>", "<OnDemandPercentageAboveBaseCapacity>100<")
	if strings.Contains(text, "eks-other-") {
		t.Errorf("another group is there: %s", text)
	}
	w.ask("DescribeAutoScalingGroups&Filters.member.1.Name=tag:eks:nodegroup-name&Filters.member.1.Values.member.1=other", 200, "eks-other-other")
	if text := w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=none", 200); strings.Contains(text, "<member>") {
		t.Errorf("a group that is not there: %s", text)
	}
	next := w.ask("DescribeAutoScalingGroups&MaxRecords=1", 200, "eks-other-other", "<NextToken>")
	_, rest, _ := strings.Cut(next, "<NextToken>")
	token, _, _ := strings.Cut(rest, "<")
	w.ask("DescribeAutoScalingGroups&MaxRecords=1&NextToken="+token, 200, workers)
	w.wasAsked("autoscaling:DescribeAutoScalingGroups *")
	w.gate.Denies = true
	w.ask("DescribeAutoScalingGroups", 403, "AccessDenied")
}

func TestDescribeAutoScalingInstances(t *testing.T) {
	w := groupWorld(t)
	text := w.ask("DescribeAutoScalingInstances&InstanceIds.member.1="+instanceA, 200, "<InstanceId>"+instanceA+"</InstanceId>", "<HealthStatus>HEALTHY</HealthStatus>", "<AutoScalingGroupName>"+workers, "<AvailabilityZone>eu-west-1a")
	if strings.Contains(text, instanceB) {
		t.Errorf("another is there: %s", text)
	}
}

func TestCapacity(t *testing.T) {
	w := groupWorld(t)
	set := "SetDesiredCapacity&AutoScalingGroupName=" + workers + "&DesiredCapacity="
	w.ask(set+"3", 200)
	if n := w.nodeGroup().Spec.ScalingConfig.DesiredSize; n != 3 {
		t.Errorf("size %d", n)
	}
	w.ask(set+"5", 400, "ValidationError", "New SetDesiredCapacity value 5 is above max value 4 for the AutoScalingGroup.")
	w.ask(set+"0", 400, "is below min value 1")
	w.ask("SetDesiredCapacity&AutoScalingGroupName=none&DesiredCapacity=1", 400, "ValidationError", "name not found")

	update := "UpdateAutoScalingGroup&AutoScalingGroupName=" + workers
	w.ask(update+"&MinSize=4&MaxSize=6", 200)
	if s := w.nodeGroup().Spec.ScalingConfig; s != (v1alpha1.ScalingConfig{MinSize: 4, MaxSize: 6, DesiredSize: 4}) {
		t.Errorf("sizes %+v", s)
	}
	w.ask(update+"&MinSize=0&MaxSize=3&DesiredCapacity=0&NewInstancesProtectedFromScaleIn=true&HealthCheckType=EC2&DefaultCooldown=300&AvailabilityZoneDistribution.CapacityDistributionStrategy=balanced-best-effort", 200)
	if s := w.nodeGroup().Spec; s.ScalingConfig != (v1alpha1.ScalingConfig{MaxSize: 3}) || !s.ScalingGroup().ProtectNewMachines {
		t.Errorf("spec %+v", s)
	}
	w.ask(update+"&MinSize=7", 400, "Min bound, 7, must be less than or equal to max bound, 3")
	w.ask(update+"&DesiredCapacity=4", 400, "Desired capacity:4 must be between")
	w.ask(update+"&HealthCheckType=ELB", 400, "HealthCheckType")
	w.ask(update+"&AvailabilityZoneDistribution.CapacityDistributionStrategy=balanced-only", 400, "ValidationError", "must be balanced-best-effort")
	w.ask(update+"&PlacementGroup=mine", 400, "PlacementGroup")
	w.wasAsked("autoscaling:SetDesiredCapacity arn:aws:autoscaling:eu-west-1:000000000000:autoScalingGroup:"+uid+":autoScalingGroupName/"+workers+" autoscaling:resourcetag/",
		"autoscaling:SetDesiredCapacity arn:aws:autoscaling:eu-west-1:000000000000:autoScalingGroup:*:autoScalingGroupName/none")
	w.gate.Denies = true
	w.ask(set+"2", 403, "AccessDenied")
	if n := w.nodeGroup().Spec.ScalingConfig.DesiredSize; n != 0 {
		t.Errorf("size %d after a request that was denied", n)
	}
}

func TestTerminateInstance(t *testing.T) {
	w := groupWorld(t)
	request := "TerminateInstanceInAutoScalingGroup&ShouldDecrementDesiredCapacity=true&InstanceId="
	w.ask(request+instanceA, 200, "<StatusCode>InProgress</StatusCode>", "Terminating EC2 instance: "+instanceA, "shrinking the capacity from 2 to 1")
	again := func(step string) {
		t.Helper()
		g := w.nodeGroup()
		if g.Spec.ScalingConfig.DesiredSize != 1 || !slices.Equal(g.Spec.ScalingGroup().Ending, []string{instanceA}) || w.machine(instanceA).DeletionTimestamp.IsZero() {
			t.Errorf("%s: group %+v, machine %+v", step, g.Spec, w.machine(instanceA))
		}
	}
	again("once")
	w.ask(request+instanceA, 200)
	again("twice")
	w.ask(request+instanceB, 400, "Currently, desiredSize equals minSize (1).")
	if m := w.machine(instanceB); !m.DeletionTimestamp.IsZero() {
		t.Error("it was terminated all the same")
	}
	w.ask("TerminateInstanceInAutoScalingGroup&ShouldDecrementDesiredCapacity=false&InstanceId="+instanceB, 200, instanceB)
	if m := w.machine(instanceB); m.DeletionTimestamp.IsZero() || w.nodeGroup().Spec.ScalingConfig.DesiredSize != 1 {
		t.Errorf("machine %+v", m)
	}
	w.ask(request+"i-0000000000000000f", 400, "No managed instance found for instance ID: i-0000000000000000f")
	w.wasAsked("autoscaling:TerminateInstanceInAutoScalingGroup arn:aws:autoscaling:eu-west-1:000000000000:autoScalingGroup:" + uid)
}

// The service was killed after the write that made the group smaller: the request is sent again, and the group is not
// made smaller again.
func TestTerminateInstanceAfterACrash(t *testing.T) {
	w := groupWorld(t)
	g := w.nodeGroup()
	g.Spec.ScalingConfig.DesiredSize, g.Spec.AutoScaling = 1, &v1alpha1.AutoScaling{Ending: []string{instanceA, "i-0000000000000000e"}}
	if err := w.api.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.ask("TerminateInstanceInAutoScalingGroup&ShouldDecrementDesiredCapacity=true&InstanceId="+instanceA, 200, "from 2 to 1")
	if g := w.nodeGroup(); g.Spec.ScalingConfig.DesiredSize != 1 || !slices.Equal(g.Spec.ScalingGroup().Ending, []string{instanceA}) {
		t.Errorf("group %+v", g.Spec)
	}
	if w.machine(instanceA).DeletionTimestamp.IsZero() {
		t.Error("the machine is not terminated")
	}
}

func TestSetInstanceProtection(t *testing.T) {
	w := groupWorld(t)
	request := "SetInstanceProtection&AutoScalingGroupName=" + workers + "&ProtectedFromScaleIn=true&InstanceIds.member.1="
	w.ask(request+instanceA, 200)
	if !w.machine(instanceA).Spec.ProtectedFromScaleIn || w.machine(instanceB).Spec.ProtectedFromScaleIn {
		t.Error("not that one is protected")
	}
	w.ask("DescribeAutoScalingInstances&InstanceIds.member.1="+instanceA, 200, "<ProtectedFromScaleIn>true</ProtectedFromScaleIn>")
	w.ask(request+"i-0000000000000000f", 400, "is not part of Auto Scaling group")
}

func TestScalingActivities(t *testing.T) {
	w := groupWorld(t)
	gone := aMachine("i-0000000000000000c", true)
	gone.DeletionTimestamp = new(metav1.NewTime(time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)))
	gone.Annotations[v1alpha1.AnnotationTerminationCause] = "because"
	if err := terminated.Remember(t.Context(), w.api, gone, time.Date(2026, 11, 22, 12, 31, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	text := w.ask("DescribeScalingActivities&AutoScalingGroupName="+workers, 200, "<Description>Launching a new EC2 instance: "+instanceA, "<Cause>increasing the capacity from 0 to 1.</Cause>",
		"<StatusCode>PreInService</StatusCode>", "<StatusCode>Successful</StatusCode>", "<Cause>because</Cause>", "<EndTime>2026-11-22T12:31:00.000Z</EndTime>", "<Progress>100</Progress>", "Subnet ID")
	if first := strings.Index(text, "Terminating EC2 instance: i-0000000000000000c"); first < 0 || first > strings.Index(text, "Launching") {
		t.Errorf("the newest is not the first: %s", text)
	}
	if n := strings.Count(text, "<ActivityId>"); n != 4 {
		t.Errorf("%d activities", n)
	}
	w.ask("DescribeScalingActivities&MaxRecords=1", 200, "<NextToken>")
	w.ask("DescribeScalingActivities&AutoScalingGroupName=none", 400, "ValidationError")
	w.ask("DescribeScalingActivities&Filters.member.1.Name=Status&Filters.member.1.Values.member.1=PreInService", 200, instanceB)

	// An obstacle to the size of a group is an activity that failed.
	g := w.nodeGroup()
	g.Spec.ScalingConfig.DesiredSize = 4
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "InsufficientFreeAddresses", Message: "no room", LastTransitionTime: metav1.Now()}}
	if err := w.api.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.ask("DescribeScalingActivities&AutoScalingGroupName="+workers, 200, "<StatusCode>Failed</StatusCode>", "<StatusMessage>no room</StatusMessage>")
}

func TestTags(t *testing.T) {
	w := groupWorld(t)
	tag := "&Tags.member.1.ResourceId=" + workers + "&Tags.member.1.ResourceType=auto-scaling-group&Tags.member.1.Key="
	w.ask("CreateOrUpdateTags"+tag+"team&Tags.member.1.Value=blue&Tags.member.1.PropagateAtLaunch=true", 200)
	w.ask("CreateOrUpdateTags"+tag+"team&Tags.member.1.Value=red&Tags.member.1.PropagateAtLaunch=false", 200)
	if got := w.nodeGroup().Spec.ScalingGroup().Tags; !slices.Equal(got, []v1alpha1.AutoScalingTag{{Key: "team", Value: "red"}}) {
		t.Errorf("tags %+v", got)
	}
	w.ask("DescribeTags&Filters.member.1.Name=key&Filters.member.1.Values.member.1=team", 200, "<Value>red</Value>", "<PropagateAtLaunch>false</PropagateAtLaunch>", "<ResourceId>"+workers)
	w.ask("DescribeTags&Filters.member.1.Name=auto-scaling-group&Filters.member.1.Values.member.1="+workers, 200, "eks:cluster-name")
	w.ask("CreateOrUpdateTags"+tag+"aws:mine", 400, "ValidationError")
	w.ask("CreateOrUpdateTags&Tags.member.1.ResourceId=none&Tags.member.1.ResourceType=auto-scaling-group&Tags.member.1.Key=a", 400, "name not found")
	w.ask("DeleteTags"+tag+"eks:cluster-name", 400, "follows from the node group")
	w.ask("DeleteTags"+tag+"team", 200)
	if got := w.nodeGroup().Spec.ScalingGroup().Tags; len(got) != 0 {
		t.Errorf("tags %+v", got)
	}
	w.wasAsked("autoscaling:CreateOrUpdateTags arn:aws:autoscaling:eu-west-1:000000000000:autoScalingGroup:" + uid + ":autoScalingGroupName/" + workers)
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "aws:requesttag/team=blue aws:") || !strings.Contains(asked, "aws:tagkeys=team") {
		t.Errorf("IAM is asked %s", asked)
	}
}

// A machine that is stopped is unhealthy, unless its health is not looked at.
func TestStoppedIsUnhealthy(t *testing.T) {
	w := groupWorld(t)
	m := &v1alpha1.Machine{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: instanceA}, m); err != nil {
		t.Fatal(err)
	}
	m.Spec.PowerState = v1alpha1.PowerStopped
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStopped})
	if err := w.api.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	ask := "DescribeAutoScalingInstances&InstanceIds.member.1=" + instanceA
	w.ask(ask, 200, "<HealthStatus>UNHEALTHY</HealthStatus>")
	w.ask("SuspendProcesses&AutoScalingGroupName="+workers+"&ScalingProcesses.member.1=HealthCheck", 200)
	w.ask(ask, 200, "<HealthStatus>HEALTHY</HealthStatus>")
}

func TestRecords(t *testing.T) {
	w := groupWorld(t)
	w.ask("SuspendProcesses&AutoScalingGroupName="+workers+"&ScalingProcesses.member.1=AZRebalance&ScalingProcesses.member.2=Launch", 200)
	w.ask("ResumeProcesses&AutoScalingGroupName="+workers+"&ScalingProcesses.member.1=Launch", 200)
	w.ask("EnableMetricsCollection&AutoScalingGroupName="+workers+"&Granularity=1Minute&Metrics.member.1=GroupMinSize", 200)
	w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1="+workers, 200, "<ProcessName>AZRebalance</ProcessName>", "<Metric>GroupMinSize</Metric>")
	w.ask("DisableMetricsCollection&AutoScalingGroupName="+workers, 200)
	w.ask("SuspendProcesses&AutoScalingGroupName="+workers, 200)
	if s := w.nodeGroup().Spec.ScalingGroup(); len(s.EnabledMetrics) != 0 || len(s.SuspendedProcesses) != len(processes()) {
		t.Errorf("kept %+v", s)
	}
	w.ask("SuspendProcesses&AutoScalingGroupName="+workers+"&ScalingProcesses.member.1=Sleep", 400, "ValidationError")
	w.ask("EnableMetricsCollection&AutoScalingGroupName="+workers+"&Granularity=1Second", 400, "1Minute")
	for _, list := range []string{"DescribeLaunchConfigurations", "DescribePolicies", "DescribeLifecycleHooks&AutoScalingGroupName=" + workers, "DescribeInstanceRefreshes&AutoScalingGroupName=" + workers} {
		w.ask(list, 200)
	}
	w.ask("DescribeLifecycleHooks&AutoScalingGroupName=none", 400, "ValidationError")
}
