// SPDX-License-Identifier: Apache-2.0

package elasticloadbalancing

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

func newFront(t *testing.T, gate *awsfronttest.Gate) *awsfront.Front {
	t.Helper()
	front := awsfronttest.New(t, gate, nil)
	if err := Register(front, awsresource.Account{Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}); err != nil {
		t.Fatal(err)
	}
	return front
}

// ask sends a form, which says by its Version which of the two services it is for.
func ask(t *testing.T, front *awsfront.Front, form string) (int, string) {
	t.Helper()
	handler, err := front.Handler(Classic)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	recorded := httptest.NewRecorder()
	handler.ServeHTTP(recorded, r)
	return recorded.Code, recorded.Body.String()
}

func TestAnswersWhatTheListSays(t *testing.T) {
	front := newFront(t, &awsfronttest.Gate{})
	if err := front.Check(); err != nil {
		t.Error(err)
	}
	for _, problem := range awsactions.Problems(func(service, action string) bool {
		if service == Classic || service == Second {
			return front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}) {
		t.Error(problem)
	}
}

func TestAnswers(t *testing.T) {
	const classic, second = "&Version=2012-06-01", "&Version=2015-12-01"
	const arn = "arn:aws:elasticloadbalancing:eu-west-1:000000000000:"
	for form, want := range map[string]string{
		"Action=DescribeLoadBalancers" + classic: `<DescribeLoadBalancersResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2012-06-01/"><DescribeLoadBalancersResult><LoadBalancerDescriptions></LoadBalancerDescriptions></DescribeLoadBalancersResult>`,
		"Action=DescribeLoadBalancers" + second:  `<DescribeLoadBalancersResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"><DescribeLoadBalancersResult><LoadBalancers></LoadBalancers></DescribeLoadBalancersResult>`,
		"Action=DescribeTargetGroups" + second:   `<TargetGroups></TargetGroups>`,

		"Action=DescribeLoadBalancers&LoadBalancerNames.member.1=web" + classic:                             "<Code>LoadBalancerNotFound</Code><Message>There is no ACTIVE Load Balancer named &apos;web&apos;",
		"Action=DescribeTags&LoadBalancerNames.member.1=web" + classic:                                      "<Code>LoadBalancerNotFound</Code>",
		"Action=DescribeTags" + classic:                                                                     "<Code>ValidationError</Code>",
		"Action=DescribeLoadBalancers&PageSize=401" + classic:                                               "<Code>ValidationError</Code>",
		"Action=DescribeLoadBalancers&Marker=x" + classic:                                                   "<Code>ValidationError</Code>",
		"Action=CreateLoadBalancer&LoadBalancerName=web&Listeners.member.1.LoadBalancerPort=80" + classic:   "<Code>UnsupportedOperation</Code><Message>Muster has no Classic Load Balancers",
		"Action=DeleteLoadBalancer&LoadBalancerName=web" + classic:                                          "<Code>UnsupportedOperation</Code>",
		"Action=DescribeTargetGroups" + classic:                                                             "<Code>InvalidAction</Code>",
		"Action=DescribeLoadBalancers&Names.member.1=web" + second:                                          "<Code>LoadBalancerNotFound</Code>",
		"Action=DescribeLoadBalancers&LoadBalancerArns.member.1=" + arn + "loadbalancer/net/web/1" + second: "<Code>LoadBalancerNotFound</Code>",
		"Action=DescribeTargetGroups&Names.member.1=web" + second:                                           "<Code>TargetGroupNotFound</Code>",
		"Action=DescribeTargetGroups&LoadBalancerArn=" + arn + "loadbalancer/net/web/1" + second:            "<Code>LoadBalancerNotFound</Code>",
		"Action=DescribeTags&ResourceArns.member.1=" + arn + "targetgroup/web/1" + second:                   "<Code>TargetGroupNotFound</Code>",
		"Action=DescribeTags&ResourceArns.member.1=" + arn + "loadbalancer/app/web/1" + second:              "<Code>LoadBalancerNotFound</Code>",
		"Action=DescribeTags&ResourceArns.member.1=vpc-1" + second:                                          "<Code>ValidationError</Code>",
		"Action=CreateTargetGroup&Name=web" + second:                                                        "<Code>UnsupportedOperation</Code><Message>Muster has no such load balancers",
		"Action=DescribeLoadBalancers&Version=2011-01-01":                                                   "of elasticloadbalancing (want version 2012-06-01 or 2015-12-01)</Message>",
		"Action=DescribeLoadBalancers":                                                                      "<Code>InvalidAction</Code>",
	} {
		gate := &awsfronttest.Gate{}
		status, answer := ask(t, newFront(t, gate), form)
		if (status == http.StatusOK) != strings.Contains(answer, "Result>") || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s, want %s", form, status, answer, want)
		}
	}
}

// IAM is asked about both versions by one name.
func TestRights(t *testing.T) {
	for _, version := range []string{"2012-06-01", "2015-12-01"} {
		gate := &awsfronttest.Gate{Denies: true}
		status, answer := ask(t, newFront(t, gate), "Action=DescribeLoadBalancers&Version="+version)
		if status != http.StatusForbidden || !strings.Contains(answer, "<Code>AccessDenied</Code>") || !slices.Equal(gate.Asked, []string{"elasticloadbalancing:DescribeLoadBalancers *"}) {
			t.Errorf("%s: %d %s, asked %q", version, status, answer, gate.Asked)
		}
	}
}
