// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/miekg/pkcs11"
)

// kind tells the parent what to make of an error.
type kind string

const (
	refused     kind = ""            // somebody must change something
	unavailable kind = "unavailable" // it may pass
	badPIN      kind = "pin"         // the same PIN must not be tried again: tokens lock
)

// failure is an error of a kind.
type failure struct {
	kind kind
	error
}

func (f failure) Unwrap() error { return f.error }

func fail(k kind, format string, args ...any) error {
	return failure{k, fmt.Errorf(format, args...)}
}

// lost means that neither this session nor another will do.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

func fault(err error) *wrong {
	return &wrong{kindOf(err), err.Error()}
}

func kindOf(err error) kind {
	if f, ok := errors.AsType[failure](err); ok {
		return f.kind
	}
	code, ok := errors.AsType[pkcs11.Error](err)
	switch {
	case ok && slices.Contains(pinErrors(), code):
		return badPIN
	case ok && !slices.Contains(lasting(), code):
		return unavailable
	}
	return refused
}

func pinErrors() []pkcs11.Error {
	return []pkcs11.Error{
		pkcs11.CKR_PIN_INCORRECT, pkcs11.CKR_PIN_INVALID, pkcs11.CKR_PIN_LEN_RANGE, pkcs11.CKR_PIN_EXPIRED, pkcs11.CKR_PIN_LOCKED,
	}
}

// lasting are answers that a token will give again.
func lasting() []pkcs11.Error {
	return []pkcs11.Error{
		pkcs11.CKR_CANT_LOCK, pkcs11.CKR_DATA_INVALID, pkcs11.CKR_DATA_LEN_RANGE, pkcs11.CKR_FUNCTION_NOT_SUPPORTED,
		pkcs11.CKR_KEY_FUNCTION_NOT_PERMITTED, pkcs11.CKR_KEY_SIZE_RANGE, pkcs11.CKR_KEY_TYPE_INCONSISTENT,
		pkcs11.CKR_MECHANISM_INVALID, pkcs11.CKR_MECHANISM_PARAM_INVALID,
	}
}

// sessionLost are answers after which another session may do.
func sessionLost(err error) bool {
	code, ok := errors.AsType[pkcs11.Error](err)
	return ok && slices.Contains([]pkcs11.Error{
		pkcs11.CKR_SESSION_HANDLE_INVALID, pkcs11.CKR_SESSION_CLOSED, pkcs11.CKR_USER_NOT_LOGGED_IN,
		pkcs11.CKR_KEY_HANDLE_INVALID, pkcs11.CKR_OBJECT_HANDLE_INVALID, pkcs11.CKR_OPERATION_ACTIVE,
	}, code)
}

// tokenLost are answers after which a library must be loaded anew: not all of them find a token again that was away.
func tokenLost(err error) bool {
	code, ok := errors.AsType[pkcs11.Error](err)
	return ok && slices.Contains([]pkcs11.Error{
		pkcs11.CKR_CRYPTOKI_NOT_INITIALIZED, pkcs11.CKR_DEVICE_ERROR, pkcs11.CKR_DEVICE_REMOVED, pkcs11.CKR_GENERAL_ERROR,
		pkcs11.CKR_SLOT_ID_INVALID, pkcs11.CKR_TOKEN_NOT_PRESENT, pkcs11.CKR_TOKEN_NOT_RECOGNIZED,
	}, code)
}
