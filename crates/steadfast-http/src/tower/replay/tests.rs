use std::collections::VecDeque;
use std::io;

use http_body_util::{BodyExt, Full};

use super::*;

/// A body of these frames, of unknown length.
struct Frames(VecDeque<io::Result<Frame<Bytes>>>);

impl Frames {
    fn from_parts<const N: usize>(parts: [&'static str; N]) -> Self {
        Self(
            parts
                .map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes()))))
                .into(),
        )
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.0.pop_front())
    }
}

fn replay_of<B: Body>(body: B, limit: usize) -> Replay<B> {
    Replay::new(body, limit)
}

async fn whole<B: Body + Unpin>(body: ReplayBody<B>) -> Bytes
where
    B::Data: 'static,
    B::Error: fmt::Debug,
{
    body.collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn every_attempt_gets_the_whole_body() {
    let replay = replay_of(Frames::from_parts(["ab", "cd"]), 4);
    for _ in 0..3 {
        assert_eq!(whole(replay.next_body().unwrap()).await, "abcd");
    }
}

#[tokio::test]
async fn an_attempt_after_one_that_stopped_half_way_has_the_whole_body() {
    let replay = replay_of(Frames::from_parts(["ab", "cd", "ef"]), 6);
    let mut first = replay.next_body().unwrap();
    let frame = first.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "ab");
    let mut second = replay.next_body().unwrap();
    assert!(matches!(
        first.frame().await,
        Some(Err(ReplayError::Superseded))
    ));
    assert_eq!(
        second.frame().await.unwrap().unwrap().into_data().unwrap(),
        "ab"
    );
    assert_eq!(whole(second).await, "cdef");
    assert_eq!(whole(replay.next_body().unwrap()).await, "abcdef");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_sent_once_whole_and_not_again() {
    let replay = replay_of(Frames::from_parts(["ab", "cd"]), 3);
    let first = replay.next_body().unwrap();
    assert_eq!(replay.lost(), None);
    assert_eq!(whole(first).await, "abcd");
    assert_eq!(replay.lost(), Some(LostBody::TooLarge { limit: 3 }));
    assert!(replay.next_body().is_none());
}

#[tokio::test]
async fn a_large_body_of_which_nothing_was_read_can_still_be_sent() {
    let replay = replay_of(Full::new(Bytes::from(vec![0; 100])), 3);
    drop(replay.next_body().unwrap());
    assert_eq!(whole(replay.next_body().unwrap()).await.len(), 100);
}

#[tokio::test]
async fn the_length_stays_known_and_an_empty_body_ends_at_once() {
    let replay = replay_of(Full::new(Bytes::from("abc")), 3);
    for _ in 0..2 {
        let mut body = replay.next_body().unwrap();
        assert_eq!(body.size_hint().exact(), Some(3));
        assert!(!body.is_end_stream());
        body.frame().await.unwrap().unwrap();
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
    let empty = replay_of(Full::<Bytes>::default(), 3).next_body().unwrap();
    assert!(empty.is_end_stream());
    assert_eq!(empty.size_hint().exact(), Some(0));
}

#[tokio::test]
async fn trailers_are_sent_again_too() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "7".parse().unwrap());
    let mut frames = Frames::from_parts(["ab"]);
    frames.0.push_back(Ok(Frame::trailers(trailers.clone())));
    let replay = replay_of(frames, 10);
    for _ in 0..2 {
        let collected = replay.next_body().unwrap().collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers));
    }
}

#[tokio::test]
async fn a_body_that_fails_is_not_sent_again() {
    let mut frames = Frames::from_parts(["ab"]);
    frames.0.push_back(Err(io::Error::other("disk")));
    let replay = replay_of(frames, 10);
    let error = replay.next_body().unwrap().collect().await.unwrap_err();
    assert_eq!(error.to_string(), "the request's body failed: disk");
    assert!(replay.next_body().is_none());
}

#[tokio::test]
async fn frames_without_content_take_no_room() {
    let mut frames = vec!["a"];
    frames.extend([""; 1000]);
    frames.push("b");
    let frames = frames
        .into_iter()
        .map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes()))));
    let replay = replay_of(Frames(frames.collect()), 2);
    assert_eq!(whole(replay.next_body().unwrap()).await, "ab");
    assert_eq!(replay.shared.as_ref().unwrap().lock().kept.len(), 2);
    assert_eq!(whole(replay.next_body().unwrap()).await, "ab");
}
