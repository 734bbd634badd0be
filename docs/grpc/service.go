package main

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// An echo answers with what it was sent.
type echo struct{}

// An echoer is what the service needs of its implementation.
type echoer interface {
	Once(ctx context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)
	Stream(stream grpc.ServerStream) error
}

// Once answers one message.
func (echo) Once(_ context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	return m, nil
}

// Stream answers each message of a stream until its end.
func (echo) Stream(stream grpc.ServerStream) error {
	for {
		m := &wrapperspb.BytesValue{}
		err := stream.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}

// The names of the methods.
const (
	onceMethod   = "/echo.Echo/Once"
	streamMethod = "/echo.Echo/Stream"
)

// service is what protoc would make of a description: messages are well-known types.
var service = grpc.ServiceDesc{
	ServiceName: "echo.Echo",
	HandlerType: (*echoer)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Once",
		Handler: func(
			srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
		) (any, error) {
			m := &wrapperspb.BytesValue{}
			if err := decode(m); err != nil {
				return nil, err
			}
			return srv.(echoer).Once(ctx, m)
		},
	}},
	Streams: []grpc.StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			return srv.(echoer).Stream(stream)
		},
	}},
}
