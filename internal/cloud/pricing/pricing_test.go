// SPDX-License-Identifier: Apache-2.0

package pricing

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/machine/instancetype"
)

// world is a front with the action.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	handler http.Handler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, gate: &awsfronttest.Gate{}}
	front := awsfronttest.New(t, w.gate, nil)
	if err := Register(front, awsresource.Account{Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}); err != nil {
		t.Fatal(err)
	}
	if err := front.Check(); err != nil {
		t.Error(err)
	}
	for _, problem := range awsactions.Problems(func(service, action string) bool {
		if service == Service {
			return front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}) {
		t.Error(problem)
	}
	var err error
	if w.handler, err = front.Handler(Service); err != nil {
		t.Fatal(err)
	}
	return w
}

// answer is what GetProducts answers, or a refusal.
type answer struct {
	PriceList []string
	NextToken string
	Type      string `json:"__type"`
	Message   string `json:"message"`
}

func (w *world) ask(body string) answer {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "AWSPriceListService.GetProducts")
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	recorded := httptest.NewRecorder()
	w.handler.ServeHTTP(recorded, r)
	var out answer
	if err := json.Unmarshal(recorded.Body.Bytes(), &out); err != nil {
		w.t.Fatalf("%s: %v", recorded.Body, err)
	}
	if (recorded.Code == http.StatusOK) != (out.Type == "") {
		w.t.Errorf("%s: status %d, %s", body, recorded.Code, recorded.Body)
	}
	return out
}

// match is a filter in JSON.
func match(field, value string) string {
	return fmt.Sprintf(`{"Field":%q,"Type":"TERM_MATCH","Value":%q}`, field, value)
}

// karpenter are the filters of Karpenter's pkg/providers/pricing (v1.15.0) for a region.
func karpenter(region string, more ...string) string {
	filters := []string{
		match("regionCode", region), match("serviceCode", "AmazonEC2"), match("preInstalledSw", "NA"), match("operatingSystem", "Linux"),
		match("capacitystatus", "Used"), match("marketoption", "OnDemand"),
	}
	return `"ServiceCode":"AmazonEC2","Filters":[` + strings.Join(append(filters, more...), ",") + `]`
}

// prices reads what Karpenter reads of a page: instance types and the price of an hour.
func (w *world) prices(page answer, into map[string]float64) {
	w.t.Helper()
	for _, text := range page.PriceList {
		var p struct {
			Product struct{ Attributes struct{ InstanceType string } }
			Terms   struct {
				OnDemand map[string]struct {
					PriceDimensions map[string]struct{ PricePerUnit map[string]string }
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			w.t.Fatal(err)
		}
		for _, term := range p.Terms.OnDemand {
			for _, dimension := range term.PriceDimensions {
				usd, err := strconv.ParseFloat(dimension.PricePerUnit["USD"], 64)
				if err != nil || usd <= 0 {
					w.t.Errorf("%s: %v", text, err)
				}
				into[p.Product.Attributes.InstanceType] = usd
			}
		}
	}
}

// Every type has the price of the catalogue, by the two requests that Karpenter sends, page by page.
func TestPricesOfKarpenter(t *testing.T) {
	w := newWorld(t)
	shared := karpenter("eu-west-1", match("tenancy", "Shared"), match("productFamily", "Compute Instance"))
	found, pages := map[string]float64{}, 0
	for token := ""; pages == 0 || token != ""; pages++ {
		page := w.ask(fmt.Sprintf(`{%s,"MaxResults":7,"NextToken":%q}`, shared, token))
		if token = page.NextToken; len(page.PriceList) > 7 || page.Type != "" {
			t.Fatalf("%+v", page)
		}
		w.prices(page, found)
	}
	all := instancetype.All()
	if len(found) != len(all) || pages != (len(all)+6)/7 {
		t.Errorf("%d types on %d pages, want %d", len(found), pages, len(all))
	}
	for _, kind := range all {
		if found[kind.Name] != kind.USD {
			t.Errorf("%s costs %v, want %v", kind.Name, found[kind.Name], kind.USD)
		}
	}
	metal := map[string]float64{}
	w.prices(w.ask(`{`+karpenter("eu-west-1", match("tenancy", "Dedicated"), match("productFamily", "Compute Instance (bare metal)"))+`,"MaxResults":100}`), metal)
	if len(metal) != 1 || metal["m5.metal"] != 4.608 {
		t.Errorf("bare metal: %v", metal)
	}
	if _, err := instancetype.Find("m5.metal"); err == nil {
		t.Error("m5.metal is an instance type of the account")
	}
}

func TestFilters(t *testing.T) {
	w := newWorld(t)
	filter := func(field, how, value string) string {
		return fmt.Sprintf(`{"ServiceCode":"AmazonEC2","Filters":[{"Field":%q,"Type":%q,"Value":%q},%s]}`, field, how, value, match("tenancy", "shared"))
	}
	all := len(instancetype.All())
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"by type":               {filter("instanceType", "TERM_MATCH", "m5.large"), 1},
		"in any case":           {filter("INSTANCETYPE", "EQUALS", "M5.Large"), 1},
		"a part":                {filter("instanceType", "CONTAINS", "t3a."), 2},
		"one of several":        {filter("instanceType", "ANY_OF", "m5.large, t3.small,x"), 2},
		"none of several":       {filter("instanceType", "NONE_OF", "m5.large,t3.small"), all - 2},
		"by processors":         {filter("vcpu", "TERM_MATCH", "16"), 1},
		"by memory":             {filter("memory", "TERM_MATCH", "384 GiB"), 0},
		"by family":             {filter("instanceFamily", "TERM_MATCH", "General purpose"), all - 6},
		"by term":               {filter("termType", "TERM_MATCH", "OnDemand"), all},
		"the term of a reserve": {filter("termType", "TERM_MATCH", "Reserved"), 0},
		"another region":        {filter("regionCode", "TERM_MATCH", "us-east-2"), 0},
		"another system":        {filter("operatingSystem", "TERM_MATCH", "Windows"), 0},
	} {
		if got := w.ask(c.body); len(got.PriceList) != c.want || got.Type != "" {
			t.Errorf("%s: %d products, want %d (%s)", name, len(got.PriceList), c.want, got.Message)
		}
	}
	one := w.ask(filter("instanceType", "TERM_MATCH", "m5.large")).PriceList
	for _, part := range []string{
		`"productFamily":"Compute Instance"`, `"regionCode":"eu-west-1"`, `"vcpu":"2"`, `"memory":"8 GiB"`, `"serviceCode":"AmazonEC2"`,
		`"pricePerUnit":{"USD":"0.0960000000"}`, `"unit":"Hrs"`, `"description":"$0.096 per On Demand Linux m5.large Instance Hour"`, `"offerTermCode":"JRTCKXETXF"`,
	} {
		if len(one) != 1 || !strings.Contains(one[0], part) {
			t.Errorf("%s: want %s", one, part)
		}
	}
}

// Each refusal is one line with the rule, what was seen, and what is right.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct{ body, code, says string }{
		"another service":  {`{"ServiceCode":"AmazonS3"}`, invalid, `The ServiceCode is "AmazonS3": Muster's price list has AmazonEC2 only`},
		"no service":       {`{}`, "ValidationException", "serviceCode"},
		"an attribute":     {`{"ServiceCode":"AmazonEC2","Filters":[` + match("location", "US East (N. Virginia)") + `]}`, invalid, `has the attribute "location": filter by one of capacitystatus, `},
		"a way to match":   {`{"ServiceCode":"AmazonEC2","Filters":[{"Field":"vcpu","Type":"ABOVE","Value":"1"}]}`, invalid, `has the Type "ABOVE": it must be one of TERM_MATCH, `},
		"a format":         {`{"ServiceCode":"AmazonEC2","FormatVersion":"aws_v2"}`, invalid, `it must be aws_v1`},
		"a page too large": {`{"ServiceCode":"AmazonEC2","MaxResults":101}`, invalid, "101"},
		"a made-up page":   {`{"ServiceCode":"AmazonEC2","NextToken":"x"}`, "InvalidNextTokenException", "pagination token"},
		"too many filters": {`{"ServiceCode":"AmazonEC2","Filters":[` + strings.Repeat(match("vcpu", "2")+",", maxFilters) + match("vcpu", "2") + `]}`, invalid, "51 filters: there may be 50"},
	} {
		if got := w.ask(c.body); got.Type != c.code || !strings.Contains(got.Message, c.says) || strings.Contains(got.Message, "\n") {
			t.Errorf("%s: %s %q, want %s with %q", name, got.Type, got.Message, c.code, c.says)
		}
	}
	w.gate.Denies = true
	if got := w.ask(`{"ServiceCode":"AmazonEC2"}`); got.Type != "AccessDeniedException" || strings.Join(w.gate.Asked, "\n") == "" || !strings.HasPrefix(w.gate.Asked[len(w.gate.Asked)-1], "pricing:GetProducts *") {
		t.Errorf("%+v, asked %q", got, w.gate.Asked)
	}
}
