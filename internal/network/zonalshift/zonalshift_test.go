// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// shift is a shift away from zone a that was made some minutes before noon and expires some minutes after it.
func shift(name string, madeBefore, expiresAfter int, change ...func(*v1alpha1.ZonalShift)) v1alpha1.ZonalShift {
	s := v1alpha1.ZonalShift{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "blue", CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(madeBefore) * time.Minute))},
		Spec:       v1alpha1.ZonalShiftSpec{ClusterName: "blue", AwayFrom: "us-east-1a", ExpiryTime: metav1.NewTime(noon.Add(time.Duration(expiresAfter) * time.Minute))},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func cancelled(s *v1alpha1.ZonalShift) { s.Spec.Canceled = true }

func ended(s *v1alpha1.ZonalShift) { s.Status.Phase = v1alpha1.ZonalShiftExpired }

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		disabled bool
		shifts   []v1alpha1.ZonalShift
		active   string
		ended    string
	}{
		"nothing":                  {},
		"one":                      {shifts: []v1alpha1.ZonalShift{shift("x", 5, 5)}, active: "x"},
		"one that expires now":     {shifts: []v1alpha1.ZonalShift{shift("x", 5, 0)}, ended: "x EXPIRED: it expired at 2026-11-29T12:00:00Z\n"},
		"one that was cancelled":   {shifts: []v1alpha1.ZonalShift{shift("x", 5, 5, cancelled)}, ended: "x CANCELED: it was cancelled\n"},
		"cancelled, and expired":   {shifts: []v1alpha1.ZonalShift{shift("x", 5, -1, cancelled)}, ended: "x CANCELED: it was cancelled\n"},
		"one that has ended":       {shifts: []v1alpha1.ZonalShift{shift("x", 5, 5, ended)}},
		"of two the older one":     {shifts: []v1alpha1.ZonalShift{shift("b", 3, 5), shift("a", 2, 5)}, active: "b", ended: "a CANCELED: zonal shift b of the cluster was active before it\n"},
		"of two of the same age":   {shifts: []v1alpha1.ZonalShift{shift("b", 3, 5), shift("a", 3, 5)}, active: "a", ended: "b CANCELED: zonal shift a of the cluster was active before it\n"},
		"one after another":        {shifts: []v1alpha1.ZonalShift{shift("a", 9, -1), shift("b", 1, 5)}, active: "b", ended: "a EXPIRED: it expired at 2026-11-29T11:59:00Z\n"},
		"a cluster without shifts": {disabled: true, shifts: []v1alpha1.ZonalShift{shift("x", 5, 5)}, ended: "x CANCELED: the cluster has no zonal shifts: its spec.zonalShift.enabled is false\n"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(!c.disabled, c.shifts, noon)
			active, said := "", ""
			if plan.Active != nil {
				active = plan.Active.Name
			}
			for _, e := range plan.Ended {
				said += e.Shift.Name + " " + string(e.Phase) + ": " + e.Message + "\n"
			}
			if active != c.active || said != c.ended || (len(plan.Zones()) == 1) != (c.active != "") {
				t.Errorf("active %q, ended %q, zones %v", active, said, plan.Zones())
			}
		})
	}
}

// A Node is cordoned once, and gets back what it was.
func TestMark(t *testing.T) {
	zones := []string{"us-east-1a"}
	node := func(zone string, cordoned bool) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyZone: zone}}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	}
	for _, was := range []bool{false, true} {
		n := node("us-east-1a", was)
		if !Mark(n, zones) || !n.Spec.Unschedulable || Mark(n, zones) {
			t.Errorf("cordoned before: %v: %+v", was, n)
		}
		if !Mark(n, nil) || n.Spec.Unschedulable != was || len(n.Annotations) != 0 || Mark(n, nil) {
			t.Errorf("cordoned before: %v: after the shift %+v", was, n)
		}
	}
	n := node("us-east-1a", false)
	Mark(n, zones)
	if n.Spec.Unschedulable = false; Mark(n, zones) {
		t.Error("a Node that somebody uncordoned is cordoned again")
	}
	n.Spec.Unschedulable = true
	n.Annotations[v1alpha1.AnnotationCordoned] = "rollout"
	if Mark(n, nil); !n.Spec.Unschedulable {
		t.Error("a Node that a rollout keeps cordoned takes pods after the shift")
	}
	if n := node("us-east-1b", false); Mark(n, zones) || n.Spec.Unschedulable {
		t.Error("a Node of another zone is cordoned")
	}
}

// ep is an endpoint: zone, and R for ready, S for serving, T for terminating; a condition that is not known is left out.
func ep(address, zone, conditions string) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Zone: &zone}
	if zone == "" {
		e.Zone = nil
	}
	if conditions != "?" {
		e.Conditions = discoveryv1.EndpointConditions{
			Ready: new(strings.Contains(conditions, "R")), Serving: new(strings.Contains(conditions, "S")), Terminating: new(strings.Contains(conditions, "T")),
		}
	}
	return e
}

func slice(name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Namespace: "n", Name: name + "-1", Labels: map[string]string{discoveryv1.LabelManagedBy: ManagedBy, discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
	}
}

func TestPatch(t *testing.T) {
	zones := []string{"us-east-1a"}
	marked := func(s *discoveryv1.EndpointSlice, zone string) *discoveryv1.EndpointSlice {
		s.Labels[v1alpha1.LabelZonalShift] = zone
		return s
	}
	foreign := slice("x", ep("10.0.0.1", "us-east-1a", "RS"))
	foreign.Labels[discoveryv1.LabelManagedBy] = "somebody"
	const again, restore = `{}`, `{"metadata":{"labels":{"muster.dev/zonal-shift":null}}}`
	for name, c := range map[string]struct {
		slice *discoveryv1.EndpointSlice
		zones []string
		want  string
	}{
		"ready":                        {slice("x", ep("10.0.0.1", "us-east-1a", "RS")), zones, again},
		"not known":                    {slice("x", ep("10.0.0.1", "us-east-1a", "?")), zones, again},
		"ends, and serves":             {slice("x", ep("10.0.0.1", "us-east-1a", "ST")), zones, again},
		"out":                          {marked(slice("x", ep("10.0.0.1", "us-east-1a", "")), "us-east-1a"), zones, ""},
		"elsewhere":                    {slice("x", ep("10.0.0.1", "us-east-1b", "RS")), zones, ""},
		"without a zone":               {slice("x", ep("10.0.0.1", "", "RS")), zones, ""},
		"somebody else's":              {foreign, zones, ""},
		"over":                         {marked(slice("x", ep("10.0.0.1", "us-east-1a", "")), "us-east-1a"), nil, restore},
		"another zone is shifted now":  {marked(slice("x", ep("10.0.0.1", "us-east-1b", "RS")), "us-east-1b"), zones, restore},
		"never shifted, and not ready": {slice("x", ep("10.0.0.1", "us-east-1a", "")), nil, ""},
	} {
		if got := string(Patch(c.slice, c.zones)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestStranded(t *testing.T) {
	all := []discoveryv1.EndpointSlice{
		*slice("both", ep("10.0.0.1", "us-east-1a", ""), ep("10.0.0.2", "us-east-1b", "RS")),
		*slice("alone", ep("10.0.0.3", "us-east-1a", "")),
		*slice("sick", ep("10.0.0.4", "us-east-1a", "")), *slice("sick", ep("10.0.0.5", "us-east-1b", "")),
		*slice("parts", ep("10.0.0.6", "us-east-1a", "")), *slice("parts", ep("10.0.0.7", "us-east-1c", "?")),
		*slice("elsewhere", ep("10.0.0.8", "us-east-1b", "")), *slice("none"),
	}
	if diff := cmp.Diff([]string{"n/alone", "n/sick"}, Stranded(all, []string{"us-east-1a"})); diff != "" {
		t.Error(diff)
	}
}

func TestRequests(t *testing.T) {
	own, err := region.Find("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	blue := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue", ZonalShift: &v1alpha1.ClusterZonalShift{Enabled: true}}, Status: v1alpha1.ClusterStatus{SubnetIDs: []v1alpha1.SubnetID{"s-a"}}}
	subnet := func(name, zone string) v1alpha1.Subnet {
		return v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetSpec{AvailabilityZone: zone}}
	}
	group := v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{SubnetIDs: []v1alpha1.SubnetID{"s-c"}}}
	zones := Zones(own, blue, []v1alpha1.NodeGroup{group}, []v1alpha1.Subnet{subnet("s-c", "us-east-1c"), subnet("s-b", "us-east-1b"), subnet("s-a", "us-east-1a")})
	if diff := cmp.Diff([]region.Zone{own.Zones[0], own.Zones[2]}, zones); diff != "" {
		t.Fatal(diff)
	}
	off := blue.DeepCopy()
	off.Spec.ZonalShift.Enabled = false
	for name, c := range map[string]struct {
		of           *v1alpha1.Cluster
		zone, expiry string
		comment      string
		shifts       []v1alpha1.ZonalShift
		want         string // the shift, or the refusal
	}{
		"by name":       {blue, "us-east-1a", "20h", "why", nil, "us-east-1a 2026-11-30T08:00:00Z why"},
		"by id":         {blue, "use1-az4", "1m", "", nil, "us-east-1c 2026-11-29T12:01:00Z "},
		"three days":    {blue, "us-east-1a", "72h", "", nil, "us-east-1a 2026-12-02T12:00:00Z "},
		"in minutes":    {blue, "us-east-1a", "4320m", "", nil, "us-east-1a 2026-12-02T12:00:00Z "},
		"too long":      {blue, "us-east-1a", "73h", "", nil, "ValidationException InvalidExpiresIn: expiresIn 73h is too long: a zonal shift lasts from 1m to 72h, and can be updated to last longer"},
		"a minute more": {blue, "us-east-1a", "4321m", "", nil, "ValidationException InvalidExpiresIn: expiresIn 4321m is too long: a zonal shift lasts from 1m to 72h, and can be updated to last longer"},
		"no time":       {blue, "us-east-1a", "0m", "", nil, `ValidationException InvalidExpiresIn: expiresIn "0m" is not a time: it must be a whole number and m or h, such as 120m or 20h`},
		"seconds":       {blue, "us-east-1a", "90s", "", nil, `ValidationException InvalidExpiresIn: expiresIn "90s" is not a time: it must be a whole number and m or h, such as 120m or 20h`},
		"unknown zone":  {blue, "us-east-1b", "1h", "", nil, `ValidationException InvalidAz: awayFrom "us-east-1b" is not a zone of the cluster, which has use1-az1 (us-east-1a), use1-az4 (us-east-1c)`},
		"not enabled":   {off, "us-east-1a", "1h", "", nil, "ResourceNotFoundException : cluster blue has no zonal shifts: enable them by UpdateClusterConfig with zonalShiftConfig enabled=true"},
		"long comment":  {blue, "us-east-1a", "1h", strings.Repeat("ä", 129), nil, "ValidationException : the comment has 129 characters: it may have 128"},
		"active":        {blue, "us-east-1c", "1h", "", []v1alpha1.ZonalShift{shift("x", 5, 5)}, "ConflictException ZonalShiftAlreadyExists: zonal shift x of cluster blue away from us-east-1a is active until 2026-11-29T12:05:00Z: update or cancel it"},
		"after another": {blue, "us-east-1c", "1h", "", []v1alpha1.ZonalShift{shift("x", 5, 0), shift("y", 5, 5, cancelled)}, "us-east-1c 2026-11-29T13:00:00Z "},
	} {
		made, err := Start("id", c.of, zones, c.shifts, Ask{AwayFrom: c.zone, ExpiresIn: &c.expiry, Comment: &c.comment}, noon)
		if got := outcome(t, made, err); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
	if _, err := Start("id", blue, zones, nil, Ask{AwayFrom: "us-east-1a"}, noon); outcome(t, nil, err) != "ValidationException MissingValue: expiresIn is missing: a zonal shift must say when it ends, such as 20h" {
		t.Error(err)
	}

	s := shift("x", 5, 5)
	if err := Update(&s, Ask{ExpiresIn: new("2h")}, noon); err != nil || !s.Spec.ExpiryTime.Equal(new(metav1.NewTime(noon.Add(2*time.Hour)))) {
		t.Errorf("%v: %+v", err, s.Spec)
	}
	if err := Cancel(&s, noon); err != nil || !s.Spec.Canceled {
		t.Errorf("%v: %+v", err, s.Spec)
	}
	for _, err := range []error{Cancel(&s, noon), Update(&s, Ask{Comment: new("late")}, noon)} {
		if outcome(t, nil, err) != "ConflictException ZonalShiftStatusNotActive: zonal shift x is not active, but CANCELED: start another one" {
			t.Error(err)
		}
	}
	over := shift("y", 5, 0)
	if err := Cancel(&over, noon); err == nil || over.Spec.Canceled {
		t.Errorf("a shift that has expired is cancelled: %v", err)
	}
}

func outcome(t *testing.T, made *v1alpha1.ZonalShift, err error) string {
	t.Helper()
	if err == nil {
		return made.Spec.AwayFrom + " " + made.Spec.ExpiryTime.UTC().Format(time.RFC3339) + " " + made.Spec.Comment
	}
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		t.Fatal(err)
	}
	return string(refusal.Code) + " " + refusal.Reason + ": " + refusal.Message
}
