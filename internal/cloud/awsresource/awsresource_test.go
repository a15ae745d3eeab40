// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/nexttoken"
)

func call(action string, input awsshape.Object) *awsfront.Call {
	return &awsfront.Call{Caller: awsfronttest.Caller{}, Service: "ec2", Action: action, Input: input}
}

func TestARN(t *testing.T) {
	a := Account{Region: "eu-west-1"}
	for resource, want := range map[string]string{
		"vpc/vpc-1": "arn:aws:ec2:eu-west-1:000000000000:vpc/vpc-1",
		"":          "arn:aws:ec2:eu-west-1:000000000000:",
	} {
		if got := a.ARN(call("", nil), resource); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPages(t *testing.T) {
	a := Account{Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1})}
	all := []string{"c", "a", "g", "e", "b", "f", "d"}
	most, token, read := int32(5), "", []string(nil)
	for range 3 {
		page, next, err := Page(a, call("DescribeVpcs", nil), []any{"x"}, all, Itself, &most, token)
		if err != nil {
			t.Fatal(err)
		}
		if read, token = append(read, page...), next; next == "" {
			break
		}
		if _, _, err := Page(a, call("DescribeVpcs", nil), []any{"y"}, all, Itself, &most, next); err == nil {
			t.Error("a token is good for other parameters")
		}
	}
	slices.Sort(all)
	if !slices.Equal(read, all) || token != "" {
		t.Errorf("read %q, and %q is left", read, token)
	}
	if page, _, err := Page(a, call("DescribeVpcs", nil), nil, []string(nil), Itself, nil, ""); page == nil || err != nil {
		t.Errorf("an empty list is %#v, %v", page, err)
	}
}

func TestTags(t *testing.T) {
	kept := v1alpha1.Tags{"b": "2", "a": "1"}
	if diff := cmp.Diff([]awstag.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}, ShownTags(kept)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kept, KeptTags(TagMap(ShownTags(kept)))); diff != "" {
		t.Error(diff)
	}
	if KeptTags(map[string]string{}) != nil || PlainTags(nil) == nil {
		t.Error("an object without tags has a map, or an answer without tags has none")
	}
	conditions := ResourceTags(nil, map[string]string{"a": "1"}, "ec2")
	conditions = RequestTags(RequestTags(conditions, []awstag.Tag{{Key: "c", Value: "3"}, {Key: "b", Value: "2"}}), nil)
	if diff := cmp.Diff(map[string][]string{
		"aws:ResourceTag/a": {"1"}, "ec2:ResourceTag/a": {"1"}, "aws:RequestTag/b": {"2"}, "aws:RequestTag/c": {"3"}, "aws:TagKeys": {"c", "b"},
	}, conditions); diff != "" {
		t.Error(diff)
	}
	if left, err := awstag.Remove("ec2", TagMap(ShownTags(kept)), Removals([]string{"a"})); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestTokens(t *testing.T) {
	object := &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	of := func(action, text, cidr string) Token {
		t.Helper()
		token, err := TokenOf(call(action, awsshape.Object{"CidrBlock": cidr, "ClientToken": text}), text, "ClientToken")
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	of("CreateVpc", "", "x").Mark(object)
	if len(object.Labels) != 1 || of("CreateVpc", "", "x").Labels() != nil {
		t.Error("a request without a token marks its object")
	}
	of("CreateVpc", "t", "x").Mark(object)
	if object.Labels["a"] != "b" || len(object.Labels) != 2 || len(of("CreateVpc", "t", "x").Labels()) != 1 {
		t.Errorf("labels %v", object.Labels)
	}
	for _, c := range []struct {
		token   Token
		made    bool
		refused bool
	}{
		{of("CreateVpc", "t", "x"), true, false},
		{of("CreateVpc", "t", "y"), false, true},
		{of("CreateVpc", "u", "x"), false, false},
		{of("CreateSubnet", "t", "x"), false, false},
		{of("CreateVpc", "", "x"), false, false},
	} {
		if made, err := c.token.Made(object); made != c.made || (err != nil) != c.refused {
			t.Errorf("%v: %v, %v", c.token, made, err)
		}
	}
	if _, err := TokenOf(call("CreateVpc", nil), "with a space"); err == nil {
		t.Error("a token with a space is taken")
	}
}

func TestChangeLosesNobodysWrite(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	plane := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: "v"}}).Build()
	read := func(ctx context.Context) *v1alpha1.VPC {
		v := &v1alpha1.VPC{}
		if err := plane.Get(ctx, client.ObjectKey{Name: "v"}, v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var v *v1alpha1.VPC
	times := 0
	err := Change(t.Context(), func() (client.Writer, client.Object, error) { v = read(t.Context()); return plane, v, nil }, func() error {
		if times++; times == 1 { // somebody else is between reading and writing
			other := read(t.Context())
			other.Spec.Tags = v1alpha1.Tags{"a": "1"}
			if err := plane.Update(t.Context(), other); err != nil {
				return err
			}
		}
		if v.Spec.Tags == nil {
			v.Spec.Tags = v1alpha1.Tags{}
		}
		v.Spec.Tags["b"] = "2"
		return nil
	}, func(err error) error { return err })
	if got := read(t.Context()).Spec.Tags; err != nil || times != 2 || len(got) != 2 {
		t.Errorf("after %d times: %v, %v", times, got, err)
	}
}

type filtered struct {
	ID     string  `filter:"id,same-id"`
	Main   bool    `filter:"is-main"`
	Size   *int32  `filter:"size"`
	Speed  float64 `filter:"speed"`
	Role   string  `filter:"role,omitempty"`
	Parts  []part  `filter:"part."`
	Tail   *part   `filter:"tail."`
	Others []string
	Made   time.Time `filter:"create-time"`
	owner  []string  `filter:"owner-id"`
}

type part struct {
	State string `filter:"state"`
}

func TestFilters(t *testing.T) {
	f := FiltersOf[filtered]()
	if diff := cmp.Diff([]string{"create-time", "id", "is-main", "owner-id", "part.state", "role", "same-id", "size", "speed", "tail.state", "never"}, f.Rules("never").Names); diff != "" {
		t.Error(diff)
	}
	item := &filtered{ID: "x", Main: true, Size: new(int32(7)), Speed: 2.5, Parts: []part{{"up"}, {"down"}}, Made: time.Date(2026, 11, 22, 13, 0, 0, 5e6, time.FixedZone("east", 3600)), owner: []string{"o"}}
	for name, want := range map[string][]string{
		"id": {"x"}, "same-id": {"x"}, "is-main": {"true"}, "size": {"7"}, "speed": {"2.5"}, "role": {}, "part.state": {"up", "down"}, "tail.state": nil, "owner-id": {"o"},
		"create-time": {"2026-11-22T12:00:00.005Z"},
	} {
		if got, found := f.Values(item, name); !found || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, found)
		}
	}
	if _, found := f.Values(item, "never"); found {
		t.Error("a name without a field is found")
	}
}

func TestFiltersThatCannotBe(t *testing.T) {
	for name, of := range map[string]func(){
		"twice": func() {
			FiltersOf[struct {
				A string `filter:"a"`
				B string `filter:"a"`
			}]()
		},
		"no value": func() {
			FiltersOf[struct {
				A map[string]string `filter:"a"`
			}]()
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			of()
		}()
	}
}
