// SPDX-License-Identifier: Apache-2.0

package arczonalshift

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
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
)

const (
	blue  = "arn:aws:eks:eu-west-1:000000000000:cluster/blue"
	green = "arn:aws:eks:eu-west-1:000000000000:cluster/green"
)

// world is a front with the actions over a management plane in memory: the cluster blue in the zones a and b, which can
// be shifted, and green, which cannot.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	handler http.Handler
	now     time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gate: &awsfronttest.Gate{}, now: time.Unix(1800000000, 0)}
	cluster := func(name string, enabled bool) *v1alpha1.Cluster {
		return &v1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Status: v1alpha1.ClusterStatus{SubnetIDs: []v1alpha1.SubnetID{"subnet-a", "subnet-b"}},
			Spec: v1alpha1.ClusterSpec{Name: name, ZonalShift: &v1alpha1.ClusterZonalShift{Enabled: enabled}, Tags: v1alpha1.Tags{"team": "x"}},
		}
	}
	subnet := func(zone string) *v1alpha1.Subnet {
		return &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "subnet-" + zone}, Spec: v1alpha1.SubnetSpec{AvailabilityZone: "eu-west-1" + zone}}
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster("blue", true), cluster("green", false), subnet("a"), subnet("b"), subnet("c")).
		WithStatusSubresource(&v1alpha1.ZonalShift{}).WithInterceptorFuncs(awsfronttest.Numbered(func(int) time.Time { return w.now })).Build()
	w.front = awsfronttest.New(t, w.gate, func() time.Time { return w.now })
	if err := Register(w.front, awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.handler, err = w.front.Handler(service); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request such as "POST /zonalshifts", and compares what comes: a status, and parts of the body. It returns
// the body.
func (w *world) ask(request, body string, status int, has ...string) string {
	w.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body)))
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Fatalf("%s %s: %d %s, want %d", request, body, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s %s: %s, want %s", request, body, text, part)
		}
	}
	return text
}

func start(resource, zone, expires string) string {
	return `{"resourceIdentifier":"` + resource + `","awayFrom":"` + zone + `","expiresIn":"` + expires + `","comment":"why"}`
}

func (w *world) start() (id string) {
	w.t.Helper()
	var made struct{ ZonalShiftID string }
	if err := json.Unmarshal([]byte(w.ask("POST /zonalshifts", start(blue, "euw1-az1", "2h"), 201)), &made); err != nil {
		w.t.Fatal(err)
	}
	return made.ZonalShiftID
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	list := awsactions.NewList()
	for _, problem := range awsactions.Problems(func(s, action string) bool {
		if s == service {
			return w.front.Answers(s, action)
		}
		a, _ := list.Find(s, action)
		return a.Mark != awsactions.Refused && !list.NotYet(s, action)
	}) {
		t.Error(problem)
	}
}

func TestLifeOfAShift(t *testing.T) {
	w := newWorld(t)
	resource := "GET /managedresources/" + url.PathEscape(blue)
	w.ask(resource, "", 200, `"arn":"`+blue+`"`, `"name":"blue"`, `"appliedWeights":{"euw1-az1":1,"euw1-az2":1}`, `"zonalShifts":[]`, `"zonalAutoshiftStatus":"DISABLED"`)
	w.ask("POST /zonalshifts", start(blue, "eu-west-1a", "2h"), 201, `"awayFrom":"euw1-az1"`, `"comment":"why"`, `"expiryTime":1800007200`, `"resourceIdentifier":"`+blue+`"`, `"startTime":1800000000`, `"status":"ACTIVE"`)
	var all struct {
		Items []struct{ ZonalShiftID string }
	}
	if err := json.Unmarshal([]byte(w.ask("GET /zonalshifts", "", 200, `"shiftType":"ZONAL_SHIFT"`)), &all); err != nil || len(all.Items) != 1 {
		t.Fatal(err, all)
	}
	id := all.Items[0].ZonalShiftID
	w.ask("POST /zonalshifts", start(blue, "euw1-az2", "2h"), 409, `"__type":"ConflictException"`, `"reason":"ZonalShiftAlreadyExists"`, `"zonalShiftId":"`+id+`"`)
	w.ask(resource, "", 200, `"appliedWeights":{"euw1-az1":0,"euw1-az2":1}`, `"appliedStatus":"APPLIED"`, `"zonalShiftId":"`+id+`"`)
	w.ask("GET /managedresources", "", 200, `"availabilityZones":["euw1-az1","euw1-az2"]`, `"appliedWeights":{"euw1-az1":0,"euw1-az2":1}`, `"practiceRunStatus":"DISABLED"`)
	w.ask("PATCH /zonalshifts/"+id, `{"comment":"other","expiresIn":"3h"}`, 200, `"comment":"other"`, `"expiryTime":1800010800`)
	w.ask("PATCH /zonalshifts/"+id, `{"expiresIn":"73h"}`, 400, `"__type":"ValidationException"`, `"reason":"InvalidExpiresIn"`)
	w.ask("DELETE /zonalshifts/"+id, "", 200, `"status":"CANCELED"`)
	w.ask("DELETE /zonalshifts/"+id, "", 409, `"reason":"ZonalShiftStatusNotActive"`)
	w.ask("PATCH /zonalshifts/"+id, `{"comment":"late"}`, 409, `"reason":"ZonalShiftStatusNotActive"`)

	second := w.start()
	w.now = w.now.Add(2 * time.Hour)
	w.ask("GET /zonalshifts?status=EXPIRED", "", 200, `"zonalShiftId":"`+second+`"`, `"status":"EXPIRED"`)
	w.ask("GET /zonalshifts?status=ACTIVE", "", 200, `"items":[]`)
	w.ask(resource, "", 200, `"zonalShifts":[]`)
	third := w.start()
	w.ask("GET /zonalshifts?status=ACTIVE&resourceIdentifier="+url.QueryEscape(blue), "", 200, `"zonalShiftId":"`+third+`"`)
	w.ask("GET /zonalshifts?resourceIdentifier="+url.QueryEscape(green), "", 200, `"items":[]`)
	if first := w.ask("GET /zonalshifts?maxResults=2", "", 200, `"nextToken":"`); strings.Count(first, "zonalShiftId") != 2 {
		t.Error(first)
	}
	w.ask("GET /autoshifts", "", 200, `"items":[]`)
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		request, body string
		status        int
		code, says    string
	}{
		"an unknown zone":           {"POST /zonalshifts", start(blue, "euw1-az3", "1h"), 400, "ValidationException", "which has euw1-az1 (eu-west-1a), euw1-az2 (eu-west-1b)"},
		"too long":                  {"POST /zonalshifts", start(blue, "euw1-az1", "73h"), 400, "ValidationException", "from 1m to 72h"},
		"not enabled":               {"POST /zonalshifts", start(green, "euw1-az1", "1h"), 404, "ResourceNotFoundException", "zonalShiftConfig enabled=true"},
		"no cluster":                {"POST /zonalshifts", start(green+"er", "euw1-az1", "1h"), 404, "ResourceNotFoundException", "There is no cluster greener"},
		"of another account":        {"POST /zonalshifts", start(strings.Replace(blue, "000000000000", "111111111111", 1), "euw1-az1", "1h"), 404, "ResourceNotFoundException", "is of the account 111111111111: this is the account 000000000000"},
		"of another region":         {"POST /zonalshifts", start(strings.Replace(blue, "eu-west-1", "us-east-1", 1), "euw1-az1", "1h"), 404, "ResourceNotFoundException", "is of the region us-east-1"},
		"no cluster's ARN":          {"POST /zonalshifts", start("arn:aws:elasticloadbalancing:eu-west-1:000000000000:loadbalancer/app/a", "euw1-az1", "1h"), 400, "ValidationException", "not the ARN of a cluster"},
		"no shift":                  {"DELETE /zonalshifts/0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0", "", 404, "ResourceNotFoundException", "There is no zonal shift 0b1c2d3e"},
		"a resource not enabled":    {"GET /managedresources/" + url.PathEscape(green), "", 404, "ResourceNotFoundException", "cluster green has no zonal shifts"},
		"a status":                  {"GET /zonalshifts?status=GONE", "", 400, "ValidationException", "ACTIVE, EXPIRED or CANCELED"},
		"a token":                   {"GET /zonalshifts?nextToken=x", "", 400, "ValidationException", "pagination token"},
		"an autoshift":              {"PUT /managedresources/" + url.PathEscape(blue), `{"zonalAutoshiftStatus":"ENABLED"}`, 400, "ValidationException", "start a zonal shift"},
		"what makes a practice run": {"POST /practiceruns", `{"resourceIdentifier":"` + blue + `","awayFrom":"euw1-az1","comment":"x"}`, 400, "ValidationException", "no practice runs"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.ask(c.request, c.body, c.status, `"__type":"`+c.code+`"`, c.says)
			if strings.Contains(w.ask("GET /zonalshifts", "", 200), "zonalShiftId") {
				t.Error("there is a shift")
			}
		})
	}
}

// IAM is asked about the cluster, by its ARN and tags, also where the request names a shift.
func TestWhatIAMIsAsked(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	w.gate.Asked = nil
	w.ask("PATCH /zonalshifts/"+id, `{"comment":"x"}`, 200)
	w.ask("GET /managedresources/"+url.PathEscape(blue), "", 200)
	w.ask("GET /zonalshifts", "", 200)
	about := " " + blue + " arc-zonal-shift:resourceidentifier=" + blue + " aws:resourcetag/team=x"
	want := []string{"arc-zonal-shift:UpdateZonalShift" + about, "arc-zonal-shift:GetManagedResource" + about, "arc-zonal-shift:ListZonalShifts *"}
	if got := strings.Join(w.gate.Asked, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("IAM was asked\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	w.gate.Denies = true
	w.ask("DELETE /zonalshifts/"+id, "", 403, "AccessDeniedException")
	w.ask("DELETE /zonalshifts/0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0", "", 403, "AccessDeniedException")
	w.ask("POST /zonalshifts", start(blue, "euw1-az1", "1h"), 403, "AccessDeniedException")
	w.gate.Denies = false
	w.ask("GET /zonalshifts?status=ACTIVE", "", 200, id)
}
