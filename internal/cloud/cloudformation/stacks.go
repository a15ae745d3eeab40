// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
	"muster.dev/muster/internal/cloud/keylock"
)

// Service is the name of the service in ARNs, and at the front.
const Service = "cloudformation"

// Principal is the service as policies name it.
const Principal = "cloudformation.amazonaws.com"

// validation is the code of most refusals.
const validation = "ValidationError"

// By is for whom a stack makes requests.
type By struct {
	// StackID is the ARN of the stack.
	StackID string
	// RoleARN is the role that was passed; empty if the caller's own rights are used.
	RoleARN string
	// Caller is what Keep has kept.
	Caller []byte
	// Secrets are the values of NoEcho parameters, which no log has.
	Secrets []string
}

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// AccountID is the account whose stacks these are.
	AccountID string
	// Key seals what is secret of stacks.
	Key cipher.AEAD
	// Keep makes what is to be kept of a caller, to make requests later.
	Keep func(caller awsfront.Caller) ([]byte, error)
	// Check says why requests could not be made for somebody now; nil if they could.
	Check func(by By) error
	// Do makes a request for somebody. The error is an *awsfault.Error.
	Do  func(ctx context.Context, by By, service, action string, input awsshape.Object) (awsshape.Object, error)
	Log *slog.Logger
	Now func() time.Time
}

// Stacks has the actions, and brings stacks forward.
type Stacks struct {
	Config

	store stackrecord.Store
	zones []string
	names keylock.Locks
	// begun has a value when there may be something to do before the next look.
	begun chan struct{}

	runs    sync.WaitGroup // of stacks that are brought forward
	writing sync.Mutex     // held while it is written what is next of a stack
	mu      sync.Mutex
	running map[string]bool
	// waiting is since when a call is refused by something that may pass, by stack and call.
	waiting map[string]time.Time
}

// New checks what the actions need.
func New(c Config) (*Stacks, error) {
	if c.Management == nil || c.Pages == nil || c.AccountID == "" || c.Key == nil || c.Keep == nil || c.Check == nil || c.Do == nil || c.Now == nil {
		return nil, errors.New("the actions of stacks need a client of the management plane, a sealer of pages, an account, a key, callers and a clock")
	}
	own, err := region.Find(c.Region)
	if err != nil {
		return nil, fmt.Errorf("the actions of stacks: %w", err)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Stacks{
		Config: c, store: stackrecord.Store{Management: c.Management, Key: c.Key}, begun: make(chan struct{}, 1), running: map[string]bool{}, waiting: map[string]time.Time{},
	}
	for _, zone := range own.Zones {
		s.zones = append(s.zones, zone.Name)
	}
	return s, nil
}

// Register adds the actions to the front.
func (s *Stacks) Register(f *awsfront.Front) {
	read, ofSets := reads{s}, sets{s}
	awsfront.Register(f, Service, "CreateStack", s.createStack())
	awsfront.Register(f, Service, "UpdateStack", s.updateStack())
	awsfront.Register(f, Service, "DeleteStack", s.deleteStack())
	awsfront.Register(f, Service, "RollbackStack", s.rollbackStack())
	awsfront.Register(f, Service, "ContinueUpdateRollback", s.continueRollback())
	awsfront.Register(f, Service, "UpdateTerminationProtection", s.updateProtection())

	awsfront.Register(f, Service, "CreateChangeSet", ofSets.createSet())
	awsfront.Register(f, Service, "DescribeChangeSet", ofSets.describeSet())
	awsfront.Register(f, Service, "ListChangeSets", ofSets.listSets())
	awsfront.Register(f, Service, "ExecuteChangeSet", ofSets.executeSet())
	awsfront.Register(f, Service, "DeleteChangeSet", ofSets.deleteSet())

	awsfront.Register(f, Service, "DescribeStacks", read.describeStacks())
	awsfront.Register(f, Service, "ListStacks", read.listStacks())
	awsfront.Register(f, Service, "DescribeStackEvents", read.describeEvents())
	awsfront.Register(f, Service, "DescribeStackResource", read.describeResource())
	awsfront.Register(f, Service, "DescribeStackResources", read.describeResources())
	awsfront.Register(f, Service, "ListStackResources", read.listResources())

	awsfront.Register(f, Service, "GetTemplate", read.getTemplate())
	awsfront.Register(f, Service, "GetTemplateSummary", read.getSummary())
	awsfront.Register(f, Service, "ValidateTemplate", read.validateTemplate())
	awsfront.Register(f, Service, "ListExports", read.listExports())
	awsfront.Register(f, Service, "ListImports", read.listImports())
}

// tell has the stacks looked at soon.
func (s *Stacks) tell() {
	select {
	case s.begun <- struct{}{}:
	default:
	}
}

// refuse is a refusal that the request is to blame for.
func refuse(format string, args ...any) error { return awsfault.Errorf(validation, format, args...) }

// missing is the refusal of a stack that is not there.
func missing(name string) error { return refuse("Stack with id %s does not exist", name) }

// away is the refusal where the management plane does not answer, or a refusal as it is.
func away(err error) error {
	if _, ok := errors.AsType[*awsfault.Error](err); ok || err == nil {
		return err
	}
	if text, invalid := stackplan.Problems(err); invalid {
		return refuse("Template error: %s", text)
	}
	return unavailable(err)
}

// unavailable is the refusal where the management plane does not answer.
func unavailable(err error) error {
	return &awsfault.Error{Code: "ServiceUnavailable", Status: http.StatusServiceUnavailable, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// find reads a stack by its name or its ARN. The name of a deleted stack finds nothing.
func (s *Stacks) find(ctx context.Context, name string) (*stackrecord.Record, error) {
	if name == "" {
		return nil, refuse("StackName is empty: it must be the name or the ARN of a stack")
	}
	if stackrecord.IsARN(name) {
		r, err := s.store.Get(ctx, name[strings.LastIndex(name, "/")+1:])
		if apierrors.IsNotFound(err) || err == nil && r.ARN != name {
			return nil, missing(name)
		}
		return r, away(err)
	}
	r, err := s.store.Named(ctx, name)
	if err == nil && r == nil {
		return nil, missing(name)
	}
	return r, away(err)
}

// about is what IAM is asked about a request that names a stack, which may not be there.
func (s *Stacks) about(ctx context.Context, call *awsfront.Call, name string, conditions map[string][]string) ([]awsfront.Target, error) {
	r, err := s.find(ctx, name)
	if fault, ok := errors.AsType[*awsfault.Error](err); ok && fault.Code == validation {
		resource := name
		if !stackrecord.IsARN(name) {
			resource = s.ARN(call, "stack/"+name+"/*")
		}
		return []awsfront.Target{{Resource: resource, Conditions: conditions}}, nil
	}
	if err != nil {
		return nil, err
	}
	return []awsfront.Target{{Resource: r.ARN, Conditions: awsresource.ResourceTags(conditions, r.Asked.Tags)}}, nil
}

// everywhere is what IAM is asked about a request that is about no one stack.
func (s *Stacks) everywhere(call *awsfront.Call) []awsfront.Target {
	return []awsfront.Target{{Resource: s.ARN(call, "stack/*/*")}}
}

// place is where a stack is, with what it imports.
func (s *Stacks) place(ctx context.Context, r *stackrecord.Record) (stackplan.Place, *imports) {
	of := &imports{list: func() ([]*stackrecord.Record, error) { return s.store.List(ctx) }}
	return stackplan.Place{
		Region: s.Region, Account: s.AccountID, StackID: r.ARN, StackName: r.Name, Zones: s.zones, Imports: of.value,
	}, of
}

// notHere are members of requests that have no effect here and are refused by name.
func notHere(given map[string]bool) error {
	var names []string
	for name, is := range given {
		if is {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return refuse("%s: Muster does not have it; remove it from the request", strings.Join(names, ", "))
}
