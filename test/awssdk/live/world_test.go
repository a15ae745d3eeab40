// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
)

// envSubnets has the ids of two subnets of the default VPC, in two zones. Its absence says that no account is there to
// be tested.
const envSubnets = "MUSTER_LIVE_SUBNETS"

const (
	account = "000000000000"
	first   = "muster" // the cluster that the account has
	madeup  = "live"   // the one that these tests make
)

// world is an account, and who calls it.
type world struct {
	*testing.T
	config  aws.Config
	subnets []string
	// clients
	eks         *eks.Client
	ec2         *ec2.Client
	autoscaling *autoscaling.Client
	ssm         *ssm.Client
	kms         *kms.Client
	logs        *cloudwatchlogs.Client
	ecr         *ecr.Client
	efs         *efs.Client
	zonal       *arczonalshift.Client
	iam         *iam.Client
	sqs         *sqs.Client
	events      *eventbridge.Client
	pricing     *pricing.Client
	fis         *fis.Client
	stacks      *cloudformation.Client
	tagging     *resourcegroupstaggingapi.Client
	classic     *elasticloadbalancing.Client
	balancers   *elasticloadbalancingv2.Client
	// notes are what an action's test leaves for those after it, such as an id.
	notes map[string]string
}

// action is the test of one action.
type action struct {
	name string
	test func(*world)
}

// TestMain runs nothing where no story has started an account.
func TestMain(m *testing.M) {
	if os.Getenv(envSubnets) == "" && os.Getenv(envNames) == "" && os.Getenv(envAutoscaler) == "" {
		fmt.Println("no account is there: a story of test/stories starts one and runs this")
		return
	}
	os.Exit(m.Run())
}

// newWorld is the account that the environment names, called by its first user.
func newWorld(t *testing.T) *world {
	t.Helper()
	loaded, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loaded.HTTPClient = sender{loaded.HTTPClient}
	loaded.Retryer = func() aws.Retryer { return aws.NopRetryer{} } // a request that has to be repeated is a defect
	return (&world{T: t, subnets: strings.Fields(os.Getenv(envSubnets)), notes: map[string]string{}}).as(loaded)
}

// sender hides that bodies of requests can write themselves. The SDK closes a body when the answer begins, and such a body
// then gives net/http, which looks whether there is more of it, the error io.EOF (safeWriteToReadCloser.WriteTo of
// smithy-go v1.28.8): net/http breaks the connection, and the rest of the answer is lost. 18 of 1,765 calls of
// DescribeInstances failed so; the SDK's own Retryer repeats them.
type sender struct{ aws.HTTPClient }

func (s sender) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return s.HTTPClient.Do(r)
}

// as is the world of another caller.
func (w *world) as(c aws.Config) *world {
	other := *w
	other.config = c
	other.eks, other.ec2, other.autoscaling = eks.NewFromConfig(c), ec2.NewFromConfig(c), autoscaling.NewFromConfig(c)
	other.tagging = resourcegroupstaggingapi.NewFromConfig(c)
	other.classic, other.balancers = elasticloadbalancing.NewFromConfig(c), elasticloadbalancingv2.NewFromConfig(c)
	other.sqs, other.events = sqs.NewFromConfig(c), eventbridge.NewFromConfig(c)
	other.pricing, other.fis, other.stacks = pricing.NewFromConfig(c), fis.NewFromConfig(c), cloudformation.NewFromConfig(c)
	other.ecr, other.efs, other.zonal = ecr.NewFromConfig(c), efs.NewFromConfig(c), arczonalshift.NewFromConfig(c)
	other.ssm, other.kms, other.logs, other.iam = ssm.NewFromConfig(c), kms.NewFromConfig(c), cloudwatchlogs.NewFromConfig(c), iam.NewFromConfig(c)
	return &other
}

// run runs the tests of actions in turn: each finds what those before it made. After the first that fails the others
// would fail for its sake, so they do not run.
func (w *world) run(service string, actions []action) {
	w.Helper()
	for _, a := range actions {
		if !w.Run(a.name, func(t *testing.T) {
			step := *w
			step.T = t
			defer step.fatal()
			a.test(&step)
		}) {
			w.Fatalf("%s:%s failed, so those after it have not been tested", service, a.name)
		}
	}
}

// ctx bounds one call.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
	w.Cleanup(cancel)
	return ctx
}

// failure is the error of a call that must succeed.
type failure struct{ err error }

// need is the output of a call that must succeed.
func need[T any](output T, err error) T {
	if err != nil {
		panic(failure{err})
	}
	return output
}

// must is need without an output.
func must(err error) { need(struct{}{}, err) }

// fatal fails the test for what need was given.
func (w *world) fatal() {
	w.Helper()
	switch caught := recover().(type) {
	case nil:
	case failure:
		w.Fatal(caught.err)
	default:
		panic(caught)
	}
}

// refused fails the test unless a call is refused with a code.
func (w *world) refused(code string, err error) {
	w.Helper()
	if got := codeOf(err); got != code {
		w.Errorf("got %q (%v), want %s", got, err, code)
	}
}

func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// has fails the test for each path of exported fields at which an output has nothing, such as "Clusters[].Arn":
// docs/aws-actions.md names what is read back of each action. A list must have an item, and all items must have the
// rest of the path.
func (w *world) has(output any, paths ...string) {
	w.Helper()
	for _, path := range paths {
		if err := look(reflect.ValueOf(output), strings.Split(path, ".")); err != nil {
			w.Errorf("%s: %v", path, err)
		}
	}
}

func look(v reflect.Value, path []string) error {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return errors.New("is absent")
		}
		v = v.Elem()
	}
	if len(path) == 0 {
		if v.IsZero() && v.Kind() == reflect.String || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
			return errors.New("is empty")
		}
		return nil
	}
	name, list := strings.CutSuffix(path[0], "[]")
	field := v.FieldByName(name)
	if !field.IsValid() {
		return fmt.Errorf("%s has no field %s", v.Type(), name)
	}
	if !list {
		return look(field, path[1:])
	}
	if field.Len() == 0 {
		return fmt.Errorf("%s is empty", name)
	}
	for i := range field.Len() {
		if err := look(field.Index(i), path[1:]); err != nil {
			return err
		}
	}
	return nil
}

// eventually asks until there is no error.
func (w *world) eventually(patience time.Duration, ask func() error) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("after %v: %v", patience, err)
		}
		select {
		case <-w.Context().Done():
			w.Fatal(err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
