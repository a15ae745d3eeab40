// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
)

type caller struct{ name string }

func (c caller) ARN() arn.ARN {
	return arn.ARN{Partition: "aws", Service: "iam", Account: "000000000000", Resource: "user/" + c.name}
}
func (c caller) Principal() arn.ARN { return c.ARN() }
func (c caller) Account() string    { return "000000000000" }

// refusedBy is what IAM says no with.
func refusedBy(code, format string, args ...any) *awsfault.Error {
	return &awsfault.Error{Code: code, Status: http.StatusForbidden, Message: fmt.Sprintf(format, args...), OfIAM: true}
}

// gate lets in who says a name, and lets them do what may says.
type gate struct {
	may   func(action, resource string, conditions map[string][]string) error
	asked []string
	// unsigned is the action that nobody signs, such as sts:AssumeRoleWithWebIdentity.
	unsigned string
}

func (g *gate) Admit(r *http.Request, _ string, _ []byte) (Caller, error) {
	name := r.Header.Get("Who")
	switch name {
	case "":
		return nil, refusedBy("MissingAuthenticationToken", "Request is missing Authentication Token")
	case "stranger":
		return nil, refusedBy("InvalidClientTokenId", "The security token included in the request is invalid.")
	case "late":
		return nil, refusedBy("SignatureDoesNotMatch", "Signature expired: …")
	}
	return caller{name}, nil
}

func (g *gate) Unsigned(_ *http.Request, service, action string) (Caller, error) {
	if g.unsigned != service+":"+action {
		return nil, refusedBy("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	return caller{"nobody"}, nil
}

func (g *gate) Authorize(_ Caller, action string, about Target) error {
	g.asked = append(g.asked, fmt.Sprint(action, " ", about.Resource, " ", slices.Sorted(maps.Keys(about.Conditions))))
	if g.may == nil {
		return nil
	}
	return g.may(action, about.Resource, about.Conditions)
}

// told is a log: the attributes of each line.
type told struct {
	slog.Handler
	lines []map[string]any
}

func (*told) Enabled(context.Context, slog.Level) bool { return true }

func (l *told) Handle(_ context.Context, r slog.Record) error {
	line := map[string]any{"msg": r.Message}
	r.Attrs(func(a slog.Attr) bool { line[a.Key] = a.Value.Any(); return true })
	l.lines = append(l.lines, line)
	return nil
}

type world struct {
	gate    *gate
	front   *Front
	told    *told
	handler http.Handler
	metrics *prometheus.Registry
}

type describeIn struct{ Name string }

type describeOut struct{ Cluster *cluster }

type cluster struct{ Name, ARN string }

type deleteIn struct{ Name string }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{gate: &gate{}, metrics: prometheus.NewRegistry(), told: &told{}}
	var err error
	if w.front, err = New(Config{Gate: w.gate, Metrics: w.metrics, Log: slog.New(w.told)}); err != nil {
		t.Fatal(err)
	}
	Register(w.front, "eks", "DescribeCluster", Spec[describeIn, describeOut]{
		About: func(_ context.Context, _ *Call, in *describeIn) ([]Target, error) {
			return []Target{{Resource: "cluster/" + in.Name, Conditions: map[string][]string{"aws:ResourceTag/Team": {"a"}}}}, nil
		},
		Do: func(_ context.Context, _ *Call, in *describeIn) (*describeOut, error) {
			switch in.Name {
			case "none":
				return nil, awsfault.Errorf("ResourceNotFoundException", "No cluster found for name: none.")
			case "shaped":
				return nil, &awsfault.Error{Code: "ResourceInUseException", Message: "in use", Members: map[string]any{"clusterName": "shaped"}}
			case "panic":
				panic("the plate fell")
			case "slow":
				return nil, fmt.Errorf("reading: %w", context.DeadlineExceeded)
			case "broken":
				return nil, errors.New("a secret of the inside")
			}
			return &describeOut{&cluster{in.Name, "arn:" + in.Name}}, nil
		},
	})
	Register(w.front, "eks", "CreateCluster", Spec[deleteIn, describeOut]{
		About: func(context.Context, *Call, *deleteIn) ([]Target, error) { return []Target{{Resource: "*"}}, nil },
		Do:    func(_ context.Context, _ *Call, in *deleteIn) (*describeOut, error) { return nil, nil },
	})
	if err := w.front.Check(); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler("eks"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) ask(t *testing.T, who, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if who != "" {
		r.Header.Set("Who", who)
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		who, method, path, body string
		status                  int
		code, has               string
	}{
		"an answer":                       {who: "a", path: "/clusters/one", status: 200, has: `{"cluster":{"name":"one","arn":"arn:one"}}`},
		"an escaped label":                {who: "a", path: "/clusters/a%2Fb", status: 200, has: `"name":"a/b"`},
		"a fault of the action":           {who: "a", path: "/clusters/none", status: 404, code: "ResourceNotFoundException", has: "No cluster found for name: none."},
		"a fault with members":            {who: "a", path: "/clusters/shaped", status: 409, code: "ResourceInUseException", has: `"clusterName":"shaped"`},
		"a panic":                         {who: "a", path: "/clusters/panic", status: 500, code: "ServerException", has: "the log of the service has it"},
		"an inner error":                  {who: "a", path: "/clusters/broken", status: 500, code: "ServerException", has: "the log of the service has it"},
		"a management plane that is away": {who: "a", path: "/clusters/slow", status: 503, code: "ServiceUnavailableException", has: "try again"},
		"nobody":                          {path: "/clusters/one", status: 403, code: "MissingAuthenticationTokenException"},
		"a stranger":                      {who: "stranger", path: "/clusters/one", status: 403, code: "UnrecognizedClientException"},
		"an old signature":                {who: "late", path: "/clusters/one", status: 403, code: "InvalidSignatureException"},
		"no such operation":               {who: "a", path: "/nothing/here", status: 404, code: "UnknownOperationException"},
		"a stranger to no operation":      {who: "stranger", path: "/nothing/here", status: 403, code: "UnrecognizedClientException"},
		"refused by the list":             {who: "a", path: "/clusters/one/capabilities/x", status: 400, code: "InvalidRequestException", has: "Muster has no EKS capabilities: install the controller in the cluster"},
		"a parameter that is ignored":     {who: "a", method: "POST", path: "/clusters", body: `{"name":"x","roleArn":"r","resourcesVpcConfig":{},"zonalShiftConfig":{"enabled":true}}`, status: 400, code: "InvalidParameterException", has: "Muster does not support roleArn, resourcesVpcConfig, zonalShiftConfig: leave it out"},
		"a required parameter":            {who: "a", method: "POST", path: "/clusters", body: `{"name":"x"}`, status: 400, code: "InvalidParameterException", has: "roleArn"},
		"no JSON":                         {who: "a", method: "POST", path: "/clusters", body: `<`, status: 400, code: "SerializationException"},
		"too large":                       {who: "a", method: "POST", path: "/clusters", body: strings.Repeat("x", 256<<10+1), status: 413, code: "RequestEntityTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.method == "" {
				c.method = http.MethodGet
			}
			answer := w.ask(t, c.who, c.method, c.path, c.body)
			header, body := answer.Result().Header, answer.Body.String()
			if answer.Code != c.status || header.Get("X-Amzn-Errortype") != c.code || !strings.Contains(body, c.has) || header.Get("X-Amzn-Requestid") == "" {
				t.Errorf("%d %v %s, want %d %s %s", answer.Code, header, body, c.status, c.code, c.has)
			}
			if c.code != "" && !strings.Contains(body, `"__type":"`+c.code+`"`) {
				t.Errorf("the body has another code: %s", body)
			}
			if strings.Contains(body, "secret") || strings.Contains(body, "plate") {
				t.Errorf("the answer tells of the inside: %s", body)
			}
			if len(w.told.lines) != 1 || w.told.lines[0]["outcome"] != cmp.Or(c.code, "ok") || w.told.lines[0]["request_id"] != header.Get("X-Amzn-Requestid") {
				t.Errorf("the log is told %+v", w.told.lines)
			}
			if c.status == 500 && !strings.Contains(fmt.Sprint(w.told.lines[0]["cause"]), "plate") && !strings.Contains(fmt.Sprint(w.told.lines[0]["cause"]), "secret") {
				t.Errorf("the log is not told the cause: %+v", w.told.lines)
			}
		})
	}
}

func TestRightsAreAskedBeforeTheEffect(t *testing.T) {
	w := newWorld(t)
	w.gate.may = func(action, resource string, conditions map[string][]string) error {
		if conditions["aws:resourcetag/team"] == nil {
			t.Errorf("conditions %v", conditions)
		}
		return refusedBy("AccessDenied", "User: a is not authorized to perform: %s on resource: %s", action, resource)
	}
	answer := w.ask(t, "a", http.MethodGet, "/clusters/panic", "")
	if answer.Code != 403 || !strings.Contains(answer.Body.String(), "not authorized to perform: eks:DescribeCluster on resource: cluster/panic") ||
		answer.Header().Get("X-Amzn-Errortype") != "AccessDeniedException" {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if want := []string{"eks:DescribeCluster cluster/panic [aws:resourcetag/team]"}; !slices.Equal(w.gate.asked, want) || w.told.lines[0]["resource"] != "cluster/panic" {
		t.Errorf("asked %q, told %+v", w.gate.asked, w.told.lines)
	}
}

// Two tags whose keys differ in capitals alone are one condition, which has both values.
func TestNoConditionIsHiddenByAnother(t *testing.T) {
	for range 100 { // a map has no order
		low := lowered(map[string][]string{"aws:RequestTag/team": {"other"}, "aws:RequestTag/TEAM": {"mine"}, "aws:RequestTag/a": {"x"}, "aws:RequestTag/A": {"x"}})
		values := slices.Sorted(slices.Values(low["aws:requesttag/team"]))
		if !slices.Equal(values, []string{"mine", "other"}) || !slices.Equal(low["aws:requesttag/a"], []string{"x"}) {
			t.Fatalf("conditions %v", low)
		}
	}
}

func TestOnePrincipalDelaysNobodyElse(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.front.config.Now = func() time.Time { return now }
	codes := map[int]int{}
	for range 500 {
		codes[w.ask(t, "eager", http.MethodGet, "/clusters/one", "").Code]++
	}
	if codes[429] != 100 || codes[200] != 400 {
		t.Errorf("answers: %v", codes)
	}
	if answer := w.ask(t, "other", http.MethodGet, "/clusters/one", ""); answer.Code != 200 {
		t.Errorf("another caller: %d %s", answer.Code, answer.Body)
	}
	if answer := w.ask(t, "eager", http.MethodGet, "/clusters/one", ""); answer.Header().Get("X-Amzn-Errortype") != "ThrottlingException" {
		t.Errorf("%v", answer.Header())
	}
	var counted dto.Metric
	if err := w.front.metrics.requests.WithLabelValues("eks", "DescribeCluster", "ThrottlingException").Write(&counted); err != nil {
		t.Fatal(err)
	}
	if got := counted.GetCounter().GetValue(); got != 101 {
		t.Errorf("%v requests are counted as throttled", got)
	}
	if again, err := New(Config{Gate: w.gate, Metrics: w.metrics}); err != nil || again.metrics.requests != w.front.metrics.requests {
		t.Errorf("a second front counts elsewhere: %v", err)
	}
}

func TestAMistypedActionIsFound(t *testing.T) {
	w := newWorld(t)
	Register(w.front, "eks", "DeleteCluster", Spec[struct{ Title string }, struct{}]{})
	if err := w.front.Check(); err == nil || !strings.Contains(err.Error(), "eks:DeleteCluster: ") || !strings.Contains(err.Error(), "Title") {
		t.Error(err)
	}
	for _, name := range []string{"DeleteCluster", "DeletCluster"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is registered", name)
				}
			}()
			Register(w.front, "eks", name, Spec[struct{}, struct{}]{})
		}()
	}
}
