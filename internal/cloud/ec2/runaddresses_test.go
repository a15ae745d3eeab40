// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
)

// launching is a management plane in which an instance has its address from the nth look on.
func launching(t *testing.T, nth int, objects ...client.Object) (management client.Client, looks *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	looks = new(int)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if m, is := object.(*v1alpha1.Machine); is && err == nil {
				if *looks++; *looks >= nth {
					m.Status.NodeName = "ip-10-0-0-5.eu-west-1.compute.internal"
					m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
				}
			}
			return err
		},
	}).Build(), looks
}

func TestAddressesAreWaitedFor(t *testing.T) {
	made := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: instanceA}}
	management, looks := launching(t, 3, made.DeepCopy())
	machines := []*v1alpha1.Machine{made}
	a := instance.New(&ec2resource.EC2{Config: ec2resource.Config{Account: awsresource.Account{Management: management}, LaunchWait: time.Minute}}, nil, nil, nil)
	a.AwaitAddresses(t.Context(), machines)
	if instance.AddressOf(machines[0]).String() != "10.0.0.5" || *looks != 3 {
		t.Errorf("the machine has address %v after %d looks", instance.AddressOf(machines[0]), *looks)
	}
	// One that gets none, and one that is gone, end the request all the same.
	management, _ = launching(t, 1000, made.DeepCopy())
	a = instance.New(&ec2resource.EC2{Config: ec2resource.Config{Account: awsresource.Account{Management: management}, LaunchWait: 2 * instance.AddressLook}}, nil, nil, nil)
	a.AwaitAddresses(t.Context(), []*v1alpha1.Machine{made.DeepCopy(), {ObjectMeta: metav1.ObjectMeta{Name: instanceB}}})
}

// The answer of RunInstances has what EC2's has: the address, the name and the interface of the instance.
func TestRunInstancesAnswersWithAddresses(t *testing.T) {
	w := runWorld(t)
	w.launch = func(m *v1alpha1.Machine) {
		m.Status.NodeName = "ip-10-0-0-5.eu-west-1.compute.internal"
		m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
	}
	w.ask(run+"&MaxCount=1&SubnetId="+subnetA, 200, "<privateIpAddress>10.0.0.5</privateIpAddress>", "<privateDnsName>ip-10-0-0-5.eu-west-1.compute.internal</privateDnsName>", "<networkInterfaceId>eni-")
}

// EbsOptimized and Monitoring have no effect, and are described as they were asked for, as DisableApiStop is.
func TestSettingsOfInstancesThatAreKept(t *testing.T) {
	w := runWorld(t)
	on := w.ask(run+"&MaxCount=1&SubnetId="+subnetA+"&EbsOptimized=true&Monitoring.Enabled=true&DisableApiStop=true&ClientToken=kept", 200, "<ebsOptimized>true</ebsOptimized>", "<monitoring><state>enabled</state></monitoring>", "<clientToken>kept</clientToken>")
	id := between(on, "<instanceId>", "</instanceId>")
	w.ask("DescribeInstances&InstanceId.1="+id, 200, "<ebsOptimized>true</ebsOptimized>", "<monitoring><state>enabled</state></monitoring>")
	w.ask("DescribeInstanceAttribute&InstanceId="+id+"&Attribute=disableApiStop", 200, "<disableApiStop><value>true</value></disableApiStop>")
	w.ask("DescribeInstanceAttribute&InstanceId="+id+"&Attribute=ebsOptimized", 200, "<ebsOptimized><value>true</value></ebsOptimized>")
	off := w.ask(run+"&MaxCount=1&SubnetId="+subnetA+"&EbsOptimized=false", 200, "<ebsOptimized>false</ebsOptimized>", "<monitoring><state>disabled</state></monitoring>")
	w.ask("DescribeInstanceAttribute&InstanceId="+between(off, "<instanceId>", "</instanceId>")+"&Attribute=disableApiStop", 200, "<disableApiStop><value>false</value></disableApiStop>")
}
