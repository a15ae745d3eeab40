// SPDX-License-Identifier: Apache-2.0

package tagging

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

// world is a front with the actions, over resources that a test sets.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	handler http.Handler
	front   *awsfront.Front
	ec2     []awsresource.Tagged
	away    error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, gate: &awsfronttest.Gate{}, ec2: []awsresource.Tagged{
		{ARN: "arn:aws:ec2:eu-west-1:000000000000:vpc/vpc-1", Type: "ec2:vpc", Tags: v1alpha1.Tags{"kubernetes.io/cluster/blue": "owned", "Name": "blue"}},
		{ARN: "arn:aws:ec2:eu-west-1:000000000000:subnet/subnet-1", Type: "ec2:subnet", Tags: v1alpha1.Tags{"kubernetes.io/cluster/blue": "shared", "blank": ""}},
		{ARN: "arn:aws:ec2:eu-west-1:000000000000:subnet/subnet-2", Type: "ec2:subnet"},
	}}
	front := awsfronttest.New(t, w.gate, nil)
	w.front = front
	sources := &awsresource.TagSources{}
	sources.Add("ec2", func(_ context.Context, call *awsfront.Call) ([]awsresource.Tagged, error) {
		if call.Service != "ec2" {
			t.Errorf("EC2 is asked by a call of %s", call.Service)
		}
		return slices.Clone(w.ec2), w.away
	})
	sources.Add("eks", func(context.Context, *awsfront.Call) ([]awsresource.Tagged, error) {
		return []awsresource.Tagged{{ARN: "arn:aws:eks:eu-west-1:000000000000:cluster/blue", Type: "eks:cluster", Tags: v1alpha1.Tags{"kubernetes.io/cluster/blue": "owned"}}}, nil
	})
	if err := Register(front, awsresource.Account{Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1", TagSources: sources}); err != nil {
		t.Fatal(err)
	}
	if err := front.Check(); err != nil {
		t.Error(err)
	}
	var err error
	if w.handler, err = front.Handler(Service); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAnswersWhatTheListSays(t *testing.T) {
	front := newWorld(t).front
	for _, problem := range awsactions.Problems(func(service, action string) bool {
		if service == Service {
			return front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}) {
		t.Error(problem)
	}
}

func (w *world) ask(action, body string) (status int, answer string) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "ResourceGroupsTaggingAPI_20170126."+action)
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	recorded := httptest.NewRecorder()
	w.handler.ServeHTTP(recorded, r)
	return recorded.Code, recorded.Body.String()
}

const arns = "arn:aws:"

// names are the ends of the ARNs that GetResources answers.
func (w *world) names(body string) string {
	w.t.Helper()
	status, text := w.ask("GetResources", body)
	var answer struct {
		ResourceTagMappingList []struct{ ResourceARN string }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		w.t.Fatalf("%s: %d %s, %v", body, status, text, err)
	}
	var names []string
	for _, m := range answer.ResourceTagMappingList {
		names = append(names, m.ResourceARN[strings.LastIndexAny(m.ResourceARN, ":/")+1:])
	}
	return strings.Join(names, " ")
}

func TestGetResources(t *testing.T) {
	w := newWorld(t)
	status, answer := w.ask("GetResources", `{"TagFilters":[{"Key":"Name"}]}`)
	want := `{"PaginationToken":"","ResourceTagMappingList":[{"ResourceARN":"arn:aws:ec2:eu-west-1:000000000000:vpc/vpc-1","Tags":[{"Key":"Name","Value":"blue"},{"Key":"kubernetes.io/cluster/blue","Value":"owned"}]}]}`
	if diff := cmp.Diff(want, answer); status != http.StatusOK || diff != "" {
		t.Errorf("%d (-want +got):\n%s", status, diff)
	}
	if _, answer := w.ask("GetResources", `{"TagFilters":[{"Key":"nothing"}]}`); answer != `{"PaginationToken":"","ResourceTagMappingList":[]}` {
		t.Errorf("an empty list is %s", answer)
	}
	for body, want := range map[string]string{
		`{}`: "subnet-1 vpc-1 blue",
		`{"TagFilters":[{"Key":"kubernetes.io/cluster/blue","Values":["owned"]}]}`:                                                     "vpc-1 blue", // as Cluster API asks
		`{"TagFilters":[{"Key":"kubernetes.io/cluster/blue","Values":["owned","shared"]}]}`:                                            "subnet-1 vpc-1 blue",
		`{"TagFilters":[{"Key":"kubernetes.io/cluster/blue","Values":["Owned"]}]}`:                                                     "",
		`{"TagFilters":[{"Key":"kubernetes.io/cluster/blue","Values":["owned"]},{"Key":"Name"}]}`:                                      "vpc-1",
		`{"TagFilters":[{"Key":"blank","Values":[""]}]}`:                                                                               "subnet-1",
		`{"TagFilters":[{"Key":"Name","Values":[""]}]}`:                                                                                "",
		`{"ResourceTypeFilters":["eks"]}`:                                                                                              "blue",
		`{"ResourceTypeFilters":["ec2:vpc","eks:cluster"]}`:                                                                            "vpc-1 blue",
		`{"ResourceTypeFilters":["ec2"],"TagFilters":[{"Key":"kubernetes.io/cluster/blue"}]}`:                                          "subnet-1 vpc-1",
		`{"ResourceTypeFilters":["elasticloadbalancing:loadbalancer","elasticloadbalancing"]}`:                                         "",
		`{"ResourceTypeFilters":["ec2:vp"]}`:                                                                                           "",
		`{"ResourceARNList":["arn:aws:eks:eu-west-1:000000000000:cluster/blue","arn:aws:ec2:eu-west-1:000000000000:subnet/subnet-2"]}`: "blue",
	} {
		if got := w.names(body); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if want := "tag:GetResources *"; w.gate.Asked[0] != want {
		t.Errorf("IAM is asked %q, want %q", w.gate.Asked[0], want)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		w.ec2 = append(w.ec2, awsresource.Tagged{ARN: fmt.Sprintf("arn:aws:ec2:eu-west-1:000000000000:vpc/vpc-2%d", i), Type: "ec2:vpc", Tags: v1alpha1.Tags{"many": v1alpha1.TagValue(fmt.Sprint(i))}})
	}
	token, pages := "", []int{}
	for first := true; first || token != ""; first = false {
		body := `{"TagFilters":[{"Key":"many"}],"ResourcesPerPage":3,"PaginationToken":"` + token + `"}`
		status, text := w.ask("GetResources", body)
		var answer struct {
			ResourceTagMappingList []struct{}
			PaginationToken        string
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", body, status, text, err)
		}
		pages, token = append(pages, len(answer.ResourceTagMappingList)), answer.PaginationToken
		if token != "" {
			if status, text := w.ask("GetResources", `{"ResourcesPerPage":3,"PaginationToken":"`+token+`"}`); status != http.StatusBadRequest || !strings.Contains(text, `"__type":"InvalidParameterException"`) {
				t.Errorf("the token of another list: %d %s", status, text)
			}
		}
	}
	if want := []int{3, 3, 1}; !slices.Equal(pages, want) {
		t.Errorf("pages of %v, want %v", pages, want)
	}
}

func TestKeysAndValues(t *testing.T) {
	w := newWorld(t)
	for _, c := range [][3]string{
		{"GetTagKeys", `{}`, `{"PaginationToken":"","TagKeys":["Name","blank","kubernetes.io/cluster/blue"]}`},
		{"GetTagValues", `{"Key":"kubernetes.io/cluster/blue"}`, `{"PaginationToken":"","TagValues":["owned","shared"]}`},
		{"GetTagValues", `{"Key":"blank"}`, `{"PaginationToken":"","TagValues":[""]}`},
		{"GetTagValues", `{"Key":"nothing"}`, `{"PaginationToken":"","TagValues":[]}`},
	} {
		if status, answer := w.ask(c[0], c[1]); status != http.StatusOK || answer != c[2] {
			t.Errorf("%s %s: %d %s, want %s", c[0], c[1], status, answer, c[2])
		}
	}
}

func TestRefusals(t *testing.T) {
	many := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for name, c := range map[string]struct{ action, body, code, has string }{
		"too many filters":     {"GetResources", `{"TagFilters":[` + many(`{"Key":"a"}`, 51) + `]}`, invalid, "less than or equal to 50"},
		"too many values":      {"GetResources", `{"TagFilters":[{"Key":"a","Values":[` + many(`"b"`, 21) + `]}]}`, invalid, "less than or equal to 20"},
		"no key":               {"GetResources", `{"TagFilters":[{"Values":["a"]}]}`, invalid, "tagFilters.member.key"},
		"a long key":           {"GetResources", `{"TagFilters":[{"Key":"` + strings.Repeat("a", 129) + `"}]}`, invalid, "from 1 to 128"},
		"too many types":       {"GetResources", `{"ResourceTypeFilters":[` + many(`"ec2"`, 101) + `]}`, invalid, "less than or equal to 100"},
		"no type":              {"GetResources", `{"ResourceTypeFilters":["AWS::EC2::VPC"]}`, invalid, "ec2:vpc"},
		"no ARN":               {"GetResources", `{"ResourceARNList":["vpc-1"]}`, invalid, "not an ARN"},
		"ARNs and filters":     {"GetResources", `{"ResourceARNList":["` + arns + `eks:eu-west-1:000000000000:cluster/blue"],"TagFilters":[{"Key":"a"}]}`, invalid, "ResourceARNList"},
		"a large page":         {"GetResources", `{"ResourcesPerPage":101}`, invalid, "less than or equal to 100"},
		"an empty page":        {"GetResources", `{"ResourcesPerPage":0}`, invalid, "greater than or equal to 1"},
		"tags of a page":       {"GetResources", `{"TagsPerPage":100}`, invalid, "TagsPerPage"},
		"compliance":           {"GetResources", `{"IncludeComplianceDetails":true}`, invalid, "tag policies"},
		"no token":             {"GetResources", `{"PaginationToken":"x"}`, invalid, "pagination token"},
		"values of no key":     {"GetTagValues", `{"Key":""}`, invalid, "from 1 to 128"},
		"changes of many":      {"TagResources", `{"ResourceARNList":["a"],"Tags":{"a":"b"}}`, "UnsupportedOperationException", "ec2:CreateTags"},
		"reports":              {"StartReportCreation", `{"S3Bucket":"a"}`, "UnsupportedOperationException", "tag policies"},
		"what nobody has":      {"GetNothing", `{}`, "UnknownOperationException", "GetNothing"},
		"what is no parameter": {"GetResources", `{"TagFilters":"a"}`, "SerializationException", "TagFilters"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, answer := newWorld(t).ask(c.action, c.body); status != http.StatusBadRequest || !strings.Contains(answer, `"__type":"`+c.code+`"`) || !strings.Contains(answer, c.has) {
				t.Errorf("%d %s, want %s with %q", status, answer, c.code, c.has)
			}
		})
	}
	w := newWorld(t)
	w.away = errors.New("the management plane is away")
	if status, answer := w.ask("GetResources", `{}`); status != http.StatusInternalServerError || !strings.Contains(answer, "InternalServiceException") {
		t.Errorf("half a list: %d %s", status, answer)
	}
	w.away, w.gate.Denies = nil, true
	if status, answer := w.ask("GetResources", `{}`); status != http.StatusBadRequest || !strings.Contains(answer, "AccessDeniedException") {
		t.Errorf("without rights: %d %s", status, answer)
	}
}
