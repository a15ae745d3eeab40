// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

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
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/release"
)

const (
	account    = "000000000000"
	testRegion = "eu-west-1"
	vpcA       = "vpc-0000000000000000a"
	vpcB       = "vpc-0000000000000000b"
)

// world is a front with the actions over a management plane in memory.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	handler http.Handler
	orders  instance.Orders
	usage   map[string][]machine.Usage
	host    []netip.Prefix // of load balancers

	hostFails error
	hostHas   capacity.Host
	// launch sets on a machine that is read what its launch does; nothing if nil.
	launch func(*v1alpha1.Machine)
	// listFails and deleteFails are what the management plane answers instead of a list, and instead of deleting an
	// object; nothing if nil.
	listFails, deleteFails error
	// management is what machines are made in, if that is not the management plane in memory.
	management client.Client
}

// launched is the management plane of a world whose machines are launched.
type launched struct {
	client.Client
	w *world
}

func (l launched) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := l.Client.Get(ctx, key, object, options...)
	if m, is := object.(*v1alpha1.Machine); is && err == nil && l.w.launch != nil {
		l.w.launch(m)
	}
	return err
}

func (l launched) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if l.w.management != nil {
		return l.w.management.Create(ctx, object, options...)
	}
	return l.Client.Create(ctx, object, options...)
}

func (l launched) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if l.w.listFails != nil {
		return l.w.listFails
	}
	return l.Client.List(ctx, list, options...)
}

func (l launched) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if l.w.deleteFails != nil {
		return l.w.deleteFails
	}
	return l.Client.Delete(ctx, object, options...)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	management := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.VPC{}, &v1alpha1.Subnet{}).
		WithInterceptorFuncs(awsfronttest.Numbered(func(n int) time.Time { return time.Unix(1800000000+int64(n), 0) })).Build()
	w := &world{t: t, gate: &awsfronttest.Gate{}, api: management}
	w.front = awsfronttest.New(t, w.gate, nil)
	var err error
	if w.orders, err = Register(w.front, ec2resource.Config{
		Account: awsresource.Account{Management: launched{management, w}, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: testRegion}, LocalMachines: true, Unbuilt: func(of release.Release) string { return of.Unbuilt(func(string) bool { return false }) },
		UserData:   func(id string) ([]byte, error) { return []byte("told to " + id), nil },
		Usage:      w.addresses,
		HostRanges: func() ([]netip.Prefix, error) { return w.host, w.hostFails },
		Room:       hostroom.New(func() (capacity.Offer, error) { return w.hostHas.Offer(1), nil }),
	}); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler(ec2resource.Service); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request, as "CreateVpc&CidrBlock=10.0.0.0/16", and compares what comes: a status, and parts of the body.
func (w *world) ask(request string, status int, has ...string) string {
	w.t.Helper()
	parameters := url.Values{"Version": {"2016-11-15"}}
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

// between returns what stands between the first two of a text: an id of an answer.
func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}

// wasAsked fails if IAM was not asked one of these.
func (w *world) wasAsked(wants ...string) {
	w.t.Helper()
	for _, want := range wants {
		if !slices.ContainsFunc(w.gate.Asked, func(asked string) bool { return strings.HasPrefix(asked, want) }) {
			w.t.Errorf("IAM is not asked %s:\n%s", want, strings.Join(w.gate.Asked, "\n"))
		}
	}
}

func aVPC(id, cidr string) *v1alpha1.VPC {
	return &v1alpha1.VPC{
		ObjectMeta: metav1.ObjectMeta{Name: id, Finalizers: []string{v1alpha1.FinalizerVPC}}, Spec: v1alpha1.VPCSpec{CIDRBlock: cidr},
		Status: v1alpha1.VPCStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}},
	}
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	// What the list says of EC2 is so.
	fine := func(service, action string) bool {
		if service == "ec2" {
			return w.front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

func TestDescribeVpcs(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: vpcB}, Spec: v1alpha1.VPCSpec{CIDRBlock: "10.1.0.0/16", IsDefault: true}})
	w.ask("DescribeVpcs&VpcId.1="+vpcA, 200, "<vpcId>"+vpcA+"</vpcId>", "<state>available</state>", "<cidrBlock>10.0.0.0/16</cidrBlock>", "<associationId>vpc-cidr-assoc-0000000000000000a</associationId>",
		"<dhcpOptionsId>dopt-", "<instanceTenancy>default</instanceTenancy>", "<isDefault>false</isDefault>", "<ownerId>"+account+"</ownerId>")
	if text := w.ask("DescribeVpcs&Filter.1.Name=is-default&Filter.1.Value.1=true", 200, vpcB, "<state>pending</state>"); strings.Contains(text, vpcA) {
		t.Errorf("the filter lets through %s", text)
	}
	w.ask("DescribeVpcs&VpcId.1=vpc-1", 400, "InvalidVpcID.Malformed")
	w.ask("DescribeVpcs&VpcId.1=vpc-0000000000000000c", 400, "<Code>InvalidVpcID.NotFound</Code>", "The vpc ID 'vpc-0000000000000000c' does not exist")
	w.ask("DescribeVpcs&Filter.1.Name=colour&Filter.1.Value.1=red", 400, "The filter 'colour' is invalid")
	w.ask("DescribeVpcs&MaxResults=2", 400, "InvalidParameterValue", "Value ( 2 ) for parameter maxResults is invalid. Expecting a value greater than 5.")
	w.ask("DescribeVpcs&DryRun=true", 412, "DryRunOperation")
	w.ask("DescribeVpcs&NextToken=forged", 400, "InvalidNextToken")
	w.wasAsked("ec2:DescribeVpcs * ec2:region=eu-west-1")
	w.gate.Denies = true
	w.ask("DescribeVpcs", 403, "UnauthorizedOperation")
}

func TestDescribeAvailabilityZones(t *testing.T) {
	w := newWorld(t)
	w.ask("DescribeAvailabilityZones", 200, "<zoneName>eu-west-1a</zoneName>", "<zoneId>euw1-az3</zoneId>", "<zoneState>available</zoneState>", "<zoneType>availability-zone</zoneType>", "<optInStatus>opt-in-not-required</optInStatus>")
	if text := w.ask("DescribeAvailabilityZones&ZoneName.1=eu-west-1b", 200, "eu-west-1b"); strings.Contains(text, "eu-west-1a") {
		t.Errorf("asked for one: %s", text)
	}
	if text := w.ask("DescribeAvailabilityZones&Filter.1.Name=zone-id&Filter.1.Value.1=euw1-az2", 200, "eu-west-1b"); strings.Contains(text, "eu-west-1a") {
		t.Errorf("asked for one: %s", text)
	}
	w.ask("DescribeAvailabilityZones&ZoneName.1=eu-west-1z", 400, "Invalid availability zone: [eu-west-1z]")
	w.ask("DescribeAvailabilityZones&DryRun=true", 412, "DryRunOperation")
}

// addresses are those that the test says are used, or none of the subnets that there are.
func (w *world) addresses(vpc string) ([]machine.Usage, error) {
	if w.usage != nil {
		return w.usage[vpc], nil
	}
	var all v1alpha1.SubnetList
	if err := w.api.List(w.t.Context(), &all); err != nil {
		return nil, err
	}
	var found []machine.Usage
	for _, s := range all.Items {
		if cidr, err := netip.ParsePrefix(s.Spec.CIDRBlock); err == nil && s.Spec.VPCID == vpc {
			found = append(found, machine.Usage{Subnet: machine.Subnet{ID: s.Name, VPC: vpc, CIDR: cidr}})
		}
	}
	return found, nil
}
