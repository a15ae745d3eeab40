// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsroute"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

// Inside is a request that a service of the account makes in this process, for a caller whose identity is proven.
type Inside struct {
	// Caller is whom IAM is asked about.
	Caller Caller
	// Via is the service, such as cloudformation.amazonaws.com, if it uses the caller's own rights: policies see it as
	// aws:CalledVia. It is empty for a service that acts with a role of its own.
	Via string
	// Service and Action are those of the request, such as ec2 and CreateVpc.
	Service, Action string
	Input           awsshape.Object
	// Secrets are texts of the input that the log must not have.
	Secrets []string
}

// Do answers a request from inside: the list of actions, the input and the rights are checked as those of a request that
// came over the network, and the effect is the same. The gate proves no signature, and no rate is counted. The output has
// the members of the table; nil if the action has none. The error is an *awsfault.Error, in the codes of the service.
func (f *Front) Do(ctx context.Context, in Inside) (awsshape.Object, error) {
	began, record := f.config.Now(), &Record{Service: in.Service, Action: in.Action}
	record.RequestID = uuid.Must(uuid.NewRandomFromReader(rand.Reader)).String()
	if in.Caller != nil {
		record.Principal = in.Caller.ARN().String()
	}
	output, err := f.inside(context.WithValue(ctx, recordKey{}, record), in, record)
	record.hide(in.Secrets)
	f.config.Log.LogAttrs(ctx, slog.LevelInfo, "aws request",
		slog.String("api", in.Service), slog.String("action", in.Action), slog.String("outcome", cmp.Or(record.Code, "ok")), slog.String("principal", record.Principal),
		slog.String("resource", record.Resource), slog.String("via", in.Via), slog.String("request_id", record.RequestID), slog.Duration("took", f.config.Now().Sub(began)),
		slog.String("message", record.Message), slog.Any("cause", record.Cause))
	return output, err
}

// hide takes secrets out of what is logged.
func (r *Record) hide(secrets []string) {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		r.Message, r.Resource = strings.ReplaceAll(r.Message, secret, "****"), strings.ReplaceAll(r.Resource, secret, "****")
		if cause := fmt.Sprint(r.Cause); r.Cause != nil && strings.Contains(cause, secret) {
			r.Cause = strings.ReplaceAll(cause, secret, "****")
		}
	}
}

// inside does the request, and puts its refusal into the record.
func (f *Front) inside(ctx context.Context, in Inside, record *Record) (output awsshape.Object, err error) {
	table := awstable.Service(in.Service)
	if table == nil || in.Caller == nil {
		record.Code, record.Message = unknownOperation, fmt.Sprintf("a request from inside needs a caller and a service that is here: %q", in.Service)
		return nil, &awsfault.Error{Code: record.Code, Message: record.Message}
	}
	q := &request{handler: handler{front: f, table: table}, id: record.RequestID, action: in.Action, operation: table.Operation(in.Action)}
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
		record.Resource = q.resource
		if err != nil {
			problem := refusal(table, err)
			record.Code, record.Message, record.Cause = problem.Code, problem.Message, problem.Cause
			output, err = nil, problem
		}
	}()
	if !f.Answers(in.Service, in.Action) {
		_, err := awsroute.Decide(f.list, awsroute.Target{Service: in.Service, Action: in.Action, Protocol: table.Protocol, Signed: true})
		return nil, cmp.Or(err, errors.New("nothing answers "+in.Service+":"+in.Action))
	}
	call := &Call{Caller: in.Caller, Service: in.Service, Action: in.Action, ID: q.id, Now: f.config.Now(), Via: in.Via}
	result, err := q.act(q.lasting(ctx), call, func() (awsshape.Object, error) { return in.Input, whole(q.operation, in) })
	if err != nil || q.operation.Output == nil {
		return nil, err
	}
	return q.operation.Output.Object(result)
}

// whole refuses an input that lacks a required member, or has one that the action would not see. A codec does that for a request.
func whole(operation *awsshape.Operation, in Inside) error {
	var unknown, missing []string
	for _, name := range slices.Sorted(maps.Keys(in.Input)) {
		if operation.Input == nil || operation.Input.Member(name) == nil {
			unknown = append(unknown, name)
		}
	}
	if operation.Input != nil {
		missing = operation.Input.Missing(in.Input)
	}
	switch {
	case len(unknown) > 0:
		return awsfault.Errorf("ValidationException", "%s:%s does not take %s", in.Service, in.Action, strings.Join(unknown, ", "))
	case len(missing) > 0:
		return awsfault.Errorf("ValidationException", "%s:%s needs %s", in.Service, in.Action, strings.Join(missing, ", "))
	}
	return nil
}
