// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awscodec"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/aws/throttle"
)

// Caller is the proven sender of a request.
type Caller interface {
	// ARN is the user's, or that of a session of a role.
	ARN() arn.ARN
	// Principal is the ARN of the user or role.
	Principal() arn.ARN
	Account() string
}

// Gate decides who comes in, and what they may do. Refusals are *awsfault.Error of IAM.
type Gate interface {
	Admit(r *http.Request, service string, body []byte) (Caller, error)
	// Unsigned is the caller of an action that is registered as one whose sender something else than a signature
	// proves. It must refuse all actions that the gate does not know as such, whatever is registered.
	Unsigned(r *http.Request, service, action string) (Caller, error)
	// Authorize asks about an action such as eks:DescribeCluster. The names of the conditions are in lower case.
	Authorize(c Caller, action string, about Target) error
}

// Config is what a Front needs.
type Config struct {
	Gate Gate
	// Log has a line for each request; nil logs nothing.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// Connections is how many there may be at once, of people, and as many of machines; 1,024 if zero. When that many
	// are made each second, a new one has a second to prove its sender's identity before it makes way for others.
	Connections int
	Now         func() time.Time // time.Now if nil
}

// defaultConnections is more than the tools of one account make.
const defaultConnections = 1024

// Front answers requests.
type Front struct {
	config  Config
	list    *awsactions.List
	rates   *throttle.Limiter
	metrics *metrics
	actions map[[2]string]action
	// handlers are those of the services that have an action, by the name that requests are signed for.
	handlers map[string]*handler
	identity *handler // of STS and IAM, and of requests that name no service
	entry    http.Handler
}

// action is a registered action, without its types.
type action struct {
	in, out reflect.Type
	about   bool // says which resources a request is about
	rights  Rights
	// unsigned actions are done for senders without a signature.
	unsigned bool
	begin    func(context.Context, *Call) (func(), error)
	// read decodes the input; its result says which resources the request is about, and does the action.
	read func(*Call, *awsshape.Operation, awsshape.Object) (prepared, error)
}

type prepared struct {
	about func(context.Context) ([]Target, error)
	do    func(context.Context) (any, error)
}

// Target is one resource that a request is about, for IAM.
type Target struct {
	// Action is what IAM is asked about in place of the request's own action, such as ec2:CreateTags where a request
	// makes something with tags. It is mostly empty.
	Action string
	// Resource is an ARN, or "*".
	Resource string
	// Shown is how a refusal names the resource, if not by Resource.
	Shown string
	// Conditions are those of the request and the resource, by their names in any case.
	Conditions map[string][]string
	// Policy is the resource's own policy, in IAM's language. It is mostly empty: the caller's policies alone decide then.
	Policy string
}

// Call is one request, its sender proven.
type Call struct {
	Caller          Caller
	Service, Action string
	ID              string
	Now             time.Time
	// Input is what was decoded, as the table has it.
	Input awsshape.Object
	// Via is the service that makes the request for the caller, as policies name it by aws:CalledVia; empty for a request that
	// the caller has sent.
	Via string
}

// Rights says who decides whether the sender of a request may do an action.
type Rights uint8

// The rights.
const (
	// Policies decide: IAM is asked about each resource.
	Policies Rights = iota
	// Everybody may who has proven an identity, whatever policies say.
	Everybody
	// Itself is for an action that asks IAM in its own way, as those do that the trust policy of a role is about.
	Itself
)

// Spec is an action. The fields of In and Out are members of the operation's input and output, see
// [awsshape.Shape.Into].
type Spec[In, Out any] struct {
	// About says which resources a request is about. All must be allowed. Nil is for actions that are about no one
	// resource.
	About func(context.Context, *Call, *In) ([]Target, error)
	// Conditions are those that each target has, besides its own.
	Conditions map[string][]string
	Do         func(context.Context, *Call, *In) (*Out, error)
	// Begin, if not nil, comes before About, and what it returns is called when the action is done or refused. It may
	// put another Caller into the Call.
	Begin func(context.Context, *Call) (end func(), err error)
	// Rights other than Policies have no About.
	Rights Rights
	// Unsigned is for an action whose sender is proven by its input; its Rights are Itself. The gate must know the
	// action as unsigned, too.
	Unsigned bool
}

// New makes a Front without actions.
func New(c Config) (*Front, error) {
	if c.Gate == nil {
		return nil, errors.New("a front of AWS APIs needs a gate")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Connections <= 0 {
		c.Connections = defaultConnections
	}
	m, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}
	f := &Front{
		config: c, list: awsactions.NewList(), rates: throttle.New(), metrics: m, actions: map[[2]string]action{}, handlers: map[string]*handler{},
	}
	f.identity = &handler{front: f, table: awstable.Identity(), codec: awscodec.For(awstable.Identity())}
	for _, s := range f.identity.table.Versions {
		f.handlers[s.Name] = f.identity
	}
	f.entry = f.logged(http.HandlerFunc(f.routed))
	return f, nil
}

// ServeHTTP answers a request of any service.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.entry.ServeHTTP(w, r) }

// Register adds an action before the first request. A service or an action that is in no table is a defect of the
// program, which panics.
func Register[In, Out any](f *Front, service, name string, spec Spec[In, Out]) {
	table := awstable.Service(service)
	if table == nil || table.Operation(name) == nil || f.Answers(service, name) {
		panic(fmt.Sprintf("awsfront: %s:%s is in no table, or registered twice", service, name))
	}
	if spec.Rights != Policies && spec.About != nil || spec.Unsigned && spec.Rights != Itself {
		panic(fmt.Sprintf("awsfront: nobody would decide about %s:%s as it is registered", service, name))
	}
	f.handle(service)
	f.actions[[2]string{service, name}] = action{
		in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), about: spec.About != nil, rights: spec.Rights, unsigned: spec.Unsigned, begin: spec.Begin,
		read: func(call *Call, operation *awsshape.Operation, object awsshape.Object) (prepared, error) {
			in := new(In)
			if operation.Input != nil {
				unused, err := operation.Input.Into(object, in)
				if err != nil {
					return prepared{}, err
				}
				if len(unused) > 0 {
					return prepared{}, unsupported(table, unused)
				}
			}
			return prepared{
				about: func(ctx context.Context) ([]Target, error) {
					targets := []Target{{Resource: "*"}}
					if spec.About != nil {
						var err error
						if targets, err = spec.About(ctx, call, in); err != nil {
							return nil, err
						}
					}
					return withConditions(targets, spec.Conditions), nil
				},
				do: func(ctx context.Context) (any, error) {
					out, err := spec.Do(ctx, call, in)
					if err != nil || out == nil {
						return nil, err
					}
					return out, nil
				},
			}, nil
		},
	}
}

// handle makes the handler of a service, and of those that share its endpoint, if there is none yet.
func (f *Front) handle(service string) {
	if f.handlers[service] != nil {
		return
	}
	endpoint := awstable.Endpoint(service)
	codec := awscodec.For(endpoint)
	if codec == nil {
		panic(fmt.Sprintf("awsfront: there is no codec of protocol %q of the service %s", endpoint.Protocol, service))
	}
	h := &handler{front: f, table: endpoint, codec: codec}
	f.handlers[service] = h
	for _, s := range endpoint.Versions {
		f.handlers[s.Name] = h
	}
}

// withConditions adds conditions to each target, whose maps may be shared.
func withConditions(targets []Target, conditions map[string][]string) []Target {
	if len(conditions) == 0 {
		return targets
	}
	for i := range targets {
		all := map[string][]string{}
		maps.Copy(all, targets[i].Conditions)
		maps.Copy(all, conditions)
		targets[i].Conditions = all
	}
	return targets
}

// Answers reports whether an action is registered.
func (f *Front) Answers(service, action string) bool {
	_, ok := f.actions[[2]string{service, action}]
	return ok
}

// Services are those that have an action.
func (f *Front) Services() []string {
	var names []string
	for _, s := range awsactions.Services() {
		for _, a := range s.Actions {
			if f.Answers(s.Name, a.Name) {
				names = append(names, s.Name)
				break
			}
		}
	}
	return names
}

// Check compares the inputs and outputs of all actions with the tables, and whether they say what a request is about
// with the list of actions. It is for tests.
func (f *Front) Check() error {
	var problems []error
	for name, a := range f.actions {
		if listed, _ := f.list.Find(name[0], name[1]); !a.about && a.rights != Itself && listed.Decided() {
			problems = append(problems, fmt.Errorf("%s:%s has no About, and the list has it decided by resources %v and keys %v", name[0], name[1], listed.Resources, listed.Keys))
		}
		operation := awstable.Service(name[0]).Operation(name[1])
		for _, side := range []struct {
			shape *awsshape.Shape
			typ   reflect.Type
		}{{operation.Input, a.in}, {operation.Output, a.out}} {
			if side.shape == nil {
				if side.typ.NumField() > 0 {
					problems = append(problems, fmt.Errorf("%s:%s: %s has fields, and the table has no members", name[0], name[1], side.typ))
				}
				continue
			}
			if err := side.shape.Check(side.typ); err != nil {
				problems = append(problems, fmt.Errorf("%s:%s: %w", name[0], name[1], err))
			}
		}
	}
	return errors.Join(problems...)
}

// Handler answers the requests of one service.
func (f *Front) Handler(service string) (http.Handler, error) {
	h, ok := f.handlers[service]
	if !ok {
		return nil, fmt.Errorf("no action of the service %q is registered", service)
	}
	return f.logged(h), nil
}
