// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

var (
	awsRounds = flag.Int("awsrounds", awsKilledRounds, "how often the service is killed between a request of the AWS APIs and its effect")
	awsSeed   = flag.Uint64("awsseed", 0, "the seed of those rounds, to repeat them; 0 is another one each time")
)

// TestKilledBetweenRequestAndEffect kills the service while a request of the AWS APIs is under way, and sends the
// request again, as SDKs do, until it is answered. Each request has taken effect once then, and none half.
//
//story:about cloud/ec2 cloud/eks aws/clienttoken cluster/updatecontroller
func TestKilledBetweenRequestAndEffect(t *testing.T) {
	t.Parallel()
	seed := *awsSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat it by -awsseed %d -awsrounds %d", seed, *awsRounds)
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "0")
	c := newAWSClient(t, newIAM(t, i)).withNetwork(i)
	kinds := killedKinds(c)
	random := rand.New(rand.NewPCG(seed, 0))

	states := map[string]int{}
	cut, done := 0, map[string]*[3]int{}
	var deck []int
	for round := range *awsRounds {
		if len(deck) == 0 { // each kind once before any comes again
			deck = random.Perm(len(kinds))
		}
		kind := kinds[deck[0]]
		deck = deck[1:]
		n := random.IntN(kind.slots())
		if _, there := states[fmt.Sprintf("%s %d", kind.name, n)]; !there && random.IntN(4) > 0 { // mostly one that is there is changed or removed
			for other := range kind.slots() {
				if _, there := states[fmt.Sprintf("%s %d", kind.name, other)]; there {
					n = other
				}
			}
		}
		id := fmt.Sprintf("%s %d", kind.name, n)
		state, there := states[id]
		if done[kind.name] == nil {
			done[kind.name] = &[3]int{}
		}
		var step awsStep
		switch {
		case !there:
			step = awsStep{request: kind.make(n, fmt.Sprintf("token-%d", round)), again: kind.madeAgain, want: 1}
			done[kind.name][0]++
		case kind.change == nil || state > 1 && random.IntN(8) > 0:
			step = awsStep{request: kind.remove(n), again: kind.removedAgain}
			done[kind.name][2]++
		default:
			step = awsStep{request: kind.change(n, state+1, fmt.Sprintf("token-%d", round)), again: kind.changedAgain, want: state + 1}
			done[kind.name][1]++
		}
		killed := make(chan struct{})
		delay := time.Duration(random.Int64N(int64(60 * time.Millisecond)))
		victims := i.processes()
		go func() {
			defer close(killed)
			<-time.After(delay)
			for _, name := range []string{"guard", "serve"} { // the guard alone would wait longer each time before it starts the service again
				if p, ok := victims[name]; ok {
					_ = syscall.Kill(p.PID, syscall.SIGKILL)
				}
			}
			_, _, _ = i.try("up", "--cluster", "muster")
		}()
		what := fmt.Sprintf("round %d: %s %s, the service killed after %v", round, step.request.action, id, delay)
		answer, sent := c.until(what, step.request)
		<-killed
		if sent > 1 {
			cut++
		}
		if code := answer.code(); code != "" && (sent == 1 || code != step.again) {
			t.Fatalf("%s: sent %d times, it is answered with %d %s", what, sent, answer.status, answer.body)
		}
		if kind.made != nil && step.want == 1 && !there {
			kind.made(n, answer.body)
		}
		if states[id] = step.want; step.want == 0 {
			delete(states, id)
		}
		i.eventually(what, func() error { return kind.sees(c, n, step.want) })
	}
	t.Logf("%d of %d requests were sent more than once", cut, *awsRounds)
	for _, kind := range kinds {
		if count := done[kind.name]; count != nil {
			t.Logf("%s: %d made, %d changed, %d removed", kind.name, count[0], count[1], count[2])
		}
	}
	if *awsRounds >= 20 && cut == 0 {
		t.Error("no request was cut short: nothing was tested")
	}
	for _, kind := range kinds { // nothing else was changed meanwhile, and all of it goes
		for n := range kind.slots() {
			state := states[fmt.Sprintf("%s %d", kind.name, n)]
			i.eventually(fmt.Sprintf("%s %d at the end", kind.name, n), func() error { return kind.sees(c, n, state) })
			if state > 0 {
				if answer, _ := c.until("removing "+kind.name, kind.remove(n)); answer.code() != "" {
					t.Errorf("removing %s %d: %s", kind.name, n, answer.body)
				}
				i.eventually(fmt.Sprintf("%s %d is gone", kind.name, n), func() error { return kind.sees(c, n, 0) })
			}
		}
	}
}

// awsStep is a request of a round, and how many changes its resource has had afterwards: 1 is just made, 0 is gone.
type awsStep struct {
	request awsRequest
	// again is the code that a request which took effect is answered with when it is sent again, where there is no
	// client token.
	again string
	want  int
}

// killedKind is a kind of resource of the rounds. Resources are told by a number, and their contents by how often they
// were changed.
type killedKind struct {
	name         string
	make         func(n int, token string) awsRequest
	change       func(n, state int, token string) awsRequest // nil if nothing can be changed
	remove       func(n int) awsRequest
	made         func(n int, answer string) // may be nil
	look         func(n int) awsRequest
	state        func(n int, answer awsAnswer) (int, error) // 0 is gone
	madeAgain    string
	changedAgain string
	removedAgain string
	alone        bool // whether there is one of the kind and not two
}

// slots are how many resources of the kind there are at most.
func (k killedKind) slots() int {
	if k.alone {
		return 1
	}
	return 2
}

// sees compares a resource with what it should be.
func (k killedKind) sees(c *awsClient, n, want int) error {
	answer, err := c.send(k.look(n))
	if err != nil || answer.status >= 500 {
		return fmt.Errorf("looking: %d %s (%w)", answer.status, answer.body, err)
	}
	state, err := k.state(n, answer)
	if err == nil && state != want {
		err = fmt.Errorf("%s %d is in state %d, want %d: %s", k.name, n, state, want, answer.body)
	}
	return err
}

// awsRequest is a request before it is signed.
type awsRequest struct {
	service, action    string
	method, path, body string
	header             map[string]string
}

// awsAnswer is what came.
type awsAnswer struct {
	status int
	body   string
	header http.Header
}

// code is the error code of an answer, empty for none.
func (a awsAnswer) code() string {
	if a.status < 300 {
		return ""
	}
	if code := a.header.Get("X-Amzn-Errortype"); code != "" {
		return code
	}
	for _, marks := range [][2]string{{"<Code>", "</Code>"}, {`"__type":"`, `"`}} {
		if _, rest, ok := strings.Cut(a.body, marks[0]); ok {
			code, _, _ := strings.Cut(rest, marks[1])
			return code
		}
	}
	return fmt.Sprint("status ", a.status)
}

// awsForm is a request of the query protocols.
func awsForm(service, action string, parameters ...string) awsRequest {
	form := url.Values{"Action": {action}, "Version": {map[string]string{"iam": "2010-05-08", "ec2": "2016-11-15", "autoscaling": "2011-01-01", "sts": "2011-06-15"}[service]}}
	for i := 0; i+1 < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	return awsRequest{service: service, action: action, method: http.MethodPost, path: "/", body: form.Encode(), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}}
}

// awsTarget is a request of JSON 1.1.
func awsTarget(service, action, body string) awsRequest {
	prefix := map[string]string{"kms": "TrentService", "logs": "Logs_20140328"}[service]
	return awsRequest{service: service, action: action, method: http.MethodPost, path: "/", body: body, header: map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": prefix + "." + action}}
}

// eksRequest is a request of EKS.
func eksRequest(method, path, body string) awsRequest {
	return awsRequest{service: "eks", action: method + " " + path, method: method, path: path, body: body, header: map[string]string{"Content-Type": "application/json"}}
}

// awsClient sends requests as the first user.
type awsClient struct {
	t           *testing.T
	url, region string
	keys        aws.Credentials
	client      *http.Client
	subnets     []string
	vpc         string
}

func newAWSClient(t *testing.T, w *iam) *awsClient {
	t.Helper()
	creator := w.creator()
	c := &awsClient{t: t, region: "us-east-1", keys: aws.Credentials{AccessKeyID: creator.AccessKeyID, SecretAccessKey: creator.SecretAccessKey}}
	pool := x509.NewCertPool()
	for _, v := range w.endpoint {
		if u, ok := strings.CutPrefix(v, "AWS_ENDPOINT_URL="); ok {
			c.url = u
		}
		if path, ok := strings.CutPrefix(v, "AWS_CA_BUNDLE="); ok {
			authority, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pool.AppendCertsFromPEM(authority)
		}
	}
	if c.url == "" {
		t.Fatalf("there is no endpoint in %q", w.endpoint)
	}
	c.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

// withNetwork finds the default VPC, and what subnets there are.
func (c *awsClient) withNetwork(i *installation) *awsClient {
	c.t.Helper()
	c.subnets = strings.Fields(i.mustKubectl(managementContext, "get", "subnets", "-o", "jsonpath={.items[*].metadata.name}"))
	c.vpc = strings.Fields(i.mustKubectl(managementContext, "get", "vpcs", "-o", "jsonpath={.items[*].metadata.name}"))[0]
	return c
}

// send signs a request and sends it once.
func (c *awsClient) send(q awsRequest) (awsAnswer, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), q.method, c.url+q.path, strings.NewReader(q.body))
	if err != nil {
		return awsAnswer{}, err
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	sum := sha256.Sum256([]byte(q.body))
	if err := v4.NewSigner().SignHTTP(context.WithoutCancel(c.t.Context()), c.keys, r, hex.EncodeToString(sum[:]), q.service, c.region, time.Now()); err != nil {
		return awsAnswer{}, err
	}
	response, err := c.client.Do(r)
	if err != nil {
		return awsAnswer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return awsAnswer{response.StatusCode, string(bytes.TrimSpace(body)), response.Header}, err
}

// until sends a request until it is answered by something else than a fault of the service's, and returns how often it
// was sent.
func (c *awsClient) until(what string, q awsRequest) (awsAnswer, int) {
	c.t.Helper()
	var last error
	for sent, end := 1, time.Now().Add(90*time.Second); time.Now().Before(end); sent++ {
		answer, err := c.send(q)
		if err == nil && answer.status < 500 && answer.status != http.StatusTooManyRequests {
			return answer, sent
		}
		last = errors.Join(err, fmt.Errorf("%d %s", answer.status, answer.body))
		<-time.After(50 * time.Millisecond)
	}
	c.t.Fatalf("%s: not answered: %v", what, last)
	return awsAnswer{}, 0
}

// must sends a request that has to succeed.
func (c *awsClient) must(q awsRequest) string {
	c.t.Helper()
	answer, _ := c.until(q.action, q)
	if answer.code() != "" {
		c.t.Fatalf("%s: %d %s", q.action, answer.status, answer.body)
	}
	return answer.body
}
