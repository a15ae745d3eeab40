// SPDX-License-Identifier: Apache-2.0

package awsquery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// Admit finds the sender of a request and returns a context that has it. An *awsfault.Error is the answer; any other error is an InternalFailure.
type Admit func(ctx context.Context, r *http.Request, call Call) (context.Context, error)

// Handler does one action. The result is a struct for encoding/xml, or nil for an action that returns nothing.
type Handler func(ctx context.Context, call Call) (result any, err error)

// Config is what a Server needs.
type Config struct {
	Admit  Admit        // without it everybody is refused
	Log    *slog.Logger // nil logs nothing
	Now    func() time.Time
	Limits Limits // zero is DefaultLimits
}

// Server answers the query protocol. Register all actions before the first request.
type Server struct {
	config  Config
	actions map[[2]string]Handler // API name and action
}

// New makes a Server without actions.
func New(config Config) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Limits == (Limits{}) {
		config.Limits = DefaultLimits()
	}
	if config.Admit == nil {
		config.Admit = func(context.Context, *http.Request, Call) (context.Context, error) {
			return nil, Errorf(AccessDenied, "nobody is admitted: this service has no authentication set up")
		}
	}
	return &Server{config: config, actions: map[[2]string]Handler{}}
}

// Handle sets the handler of an action.
func (s *Server) Handle(api API, action string, handler Handler) {
	s.actions[[2]string{api.Name, action}] = handler
}

// Register sets the handler of an action whose parameters Decode reads into In. A nil *Out is an action that returns nothing.
func Register[In, Out any](s *Server, api API, action string, do func(context.Context, Call, In) (*Out, error)) {
	s.Handle(api, action, func(ctx context.Context, call Call) (any, error) {
		var in In
		if err := Decode(call.Params, &in); err != nil {
			return nil, err
		}
		out, err := do(ctx, call, in)
		if err != nil || out == nil {
			return nil, err
		}
		return out, nil
	})
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, err := Read(w, r, s.config.Limits)
	call.RequestID = uuid.Must(uuid.NewRandomFromReader(rand.Reader)).String()
	var body []byte
	if err == nil {
		body, err = s.do(r, call)
	}
	if err != nil {
		s.refuse(w, r, call, err)
		return
	}
	s.config.Log.DebugContext(r.Context(), "answered", "api", call.API.Name, "action", call.Action, "request_id", call.RequestID)
	send(w, call, http.StatusOK, body, s.config.Now())
}

// do admits, acts and writes, so that whatever goes wrong in any of it becomes one answer.
func (s *Server) do(r *http.Request, call Call) (body []byte, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			body, err = nil, fmt.Errorf("panic: %v", caught)
		}
	}()
	handler, ok := s.actions[[2]string{call.API.Name, call.Action}]
	if !ok {
		return nil, Errorf(InvalidAction, "muster has no action %.100q of %s %s", call.Action, call.API.Name, call.API.Version)
	}
	ctx, err := s.config.Admit(r.Context(), r, call)
	if err != nil {
		return nil, err
	}
	result, err := handler(ctx, call)
	if err != nil {
		return nil, err
	}
	return answer(call, result)
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, call Call, err error) {
	e := From(err)
	level := slog.LevelInfo
	if e.HTTPStatus() >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	s.config.Log.Log(r.Context(), level, "refused", "api", call.API.Name, "action", fmt.Sprintf("%.100q", call.Action), "code", e.Code,
		"request_id", call.RequestID, "message", e.Message, "cause", e.Cause)
	body, err := refusal(call, e)
	if err != nil {
		s.config.Log.ErrorContext(r.Context(), "cannot write an error", "request_id", call.RequestID, "error", err)
	}
	send(w, call, e.HTTPStatus(), body, s.config.Now())
}

// From turns any error into one that may be answered. An unknown error becomes an InternalFailure that tells nothing.
func From(err error) *awsfault.Error {
	var (
		known     *awsfault.Error
		invalid   *iam.Invalid
		outside   *iam.OutOfRange
		long      iam.TooLong
		many      iam.TooManyItems
		twice     *iam.DuplicateTag
		limit     *iam.Limit
		malformed *iampolicy.Malformed
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &invalid):
		return Because(err, ValidationError, invalid.Error())
	case errors.As(err, &outside):
		return Because(err, ValidationError, outside.Error())
	case errors.As(err, &long):
		return Because(err, ValidationError, long.Error())
	case errors.As(err, &many):
		return Because(err, ValidationError, many.Error())
	case errors.As(err, &twice):
		return Because(err, InvalidInput, twice.Error())
	case errors.As(err, &limit):
		return Because(err, LimitExceeded, limit.Error())
	case errors.As(err, &malformed):
		return Because(err, malformedCode(malformed), malformed.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Because(err, ServiceUnavailable, "the answer took too long, try again")
	}
	return Because(err, InternalFailure, "something went wrong here; the log has it under the request id")
}

// malformedCode is LimitExceeded for a document that is right but too large, as for IAM.
func malformedCode(e *iampolicy.Malformed) Code {
	if e.TooLarge {
		return LimitExceeded
	}
	return MalformedPolicyDocument
}
