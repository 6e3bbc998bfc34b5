--
-- PostgreSQL database dump
--

\restrict VpJpaRcS4OB5UdOjSwkYGhsH9HRYoqXUmqa7C4trtQOWip2WNaBo8OlhyaNQE7t

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: accounts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.accounts (
    id bigint NOT NULL,
    person bytea NOT NULL,
    metric character varying(100) NOT NULL,
    purpose character varying(64) NOT NULL,
    "time" bigint NOT NULL,
    hour bigint NOT NULL,
    day bigint NOT NULL,
    week bigint NOT NULL,
    month bigint NOT NULL,
    year bigint NOT NULL,
    ever bigint NOT NULL,
    slack_hour bigint NOT NULL,
    slack_day bigint NOT NULL,
    slack_week bigint NOT NULL,
    slack_month bigint NOT NULL,
    slack_year bigint NOT NULL,
    slack_ever bigint NOT NULL,
    seal bytea NOT NULL
);


--
-- Name: blocks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.blocks (
    lane integer NOT NULL,
    number bigint NOT NULL,
    first bigint NOT NULL,
    count bigint NOT NULL,
    "time" bigint NOT NULL,
    link bytea NOT NULL
);


--
-- Name: books; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.books (
    id integer NOT NULL,
    version integer NOT NULL,
    name character varying(32) NOT NULL,
    policy text NOT NULL,
    created bigint NOT NULL,
    key_check bytea NOT NULL,
    copied bigint
);


--
-- Name: books_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.books_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: books_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.books_id_seq OWNED BY public.books.id;


--
-- Name: entries; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries (
    lane integer NOT NULL,
    number bigint NOT NULL,
    kind character varying(8) NOT NULL,
    account bigint,
    "time" bigint,
    amount bigint,
    slack bigint,
    purpose character varying(64),
    request bytea,
    note text,
    shares bytea,
    report bytea,
    mark bytea,
    salt bytea,
    seal bytea NOT NULL
);


--
-- Name: lanes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.lanes (
    lane integer NOT NULL,
    blocks bigint NOT NULL,
    entries bigint NOT NULL,
    accounts bigint NOT NULL,
    "time" bigint NOT NULL,
    head bytea NOT NULL
);


--
-- Name: tombstones; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tombstones (
    person bytea NOT NULL,
    lane integer NOT NULL,
    number bigint NOT NULL
);


--
-- Name: books id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.books ALTER COLUMN id SET DEFAULT nextval('public.books_id_seq'::regclass);


--
-- Data for Name: accounts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.accounts VALUES (70, '\xa3ab5b16145fa9df09408080d49da9fe', 'l2', '', 1794859177878, 2000000, 2000000, 2000000, 2000000, 2000000, 2000000, 0, 0, 0, 0, 0, 0, '\x73cc15e7fe3283231ce3035683dab5f5cf651c52b8b0672e7d72f32193e95270');
INSERT INTO public.accounts VALUES (134, '\xd8d9504dd64f307c9930999e15c6a8b3', 'haversine/km', '', 1794859177887, 10000000, 10000000, 10000000, 10000000, 10000000, 10000000, 0, 0, 0, 0, 0, 0, '\x21ccf766778a18d59321864af9388acb94ecf207c6776c059a61525a8d4bbc10');
INSERT INTO public.accounts VALUES (6, '\xa773057e76dde9414a119bd3e34d340b', 'haversine/km', '', 1794859177898, 35000000, 35000000, 35000000, 35000000, 35000000, 35000000, 0, 0, 0, 0, 0, 0, '\xe33671aff0557842be64696470e8361f755c83ab7c8e25f6eefd9a862ac7daf9');
INSERT INTO public.accounts VALUES (198, '\x146b12d88d55be76e8a6443718bc2cc2', 'haversine/km', '', 1794859177898, 10000000, 10000000, 10000000, 10000000, 10000000, 10000000, 0, 0, 0, 0, 0, 0, '\xc8bb6c6ed44e0c9f2d3369049a9784ec11ae57c94a09f640acae6b8b17b7fa3d');
INSERT INTO public.accounts VALUES (262, '\x050e9e100c41acb8d6ef02ed5201bf05', 'haversine/km', '', 1794859178050, 20000000, 20000000, 20000000, 20000000, 20000000, 20000000, 0, 0, 0, 0, 0, 0, '\xe5061b557b44fa59918ddb3bcda66730e587e94f42f1d9172ce9c0aa0821ea77');
INSERT INTO public.accounts VALUES (326, '\x549cd64f2ca8de705dd56649969a1628', 'haversine/km', '', 1794859178050, 20000000, 20000000, 20000000, 20000000, 20000000, 20000000, 0, 0, 0, 0, 0, 0, '\xa77ef09c624bd398f34c4a021473858087d3345de5a044b10362df9628aff880');
INSERT INTO public.accounts VALUES (390, '\x7273de85a8027fb5112ffd3363326151', 'haversine/km', '', 1794859178050, 20000000, 20000000, 20000000, 20000000, 20000000, 20000000, 0, 0, 0, 0, 0, 0, '\x55317e81b8422bd5193c7878bb179bdb4d94d2ddf677d5962084cefbca33dde8');
INSERT INTO public.accounts VALUES (454, '\xba75b5682626afd6d0ffb64f047197cc', 'haversine/km', '', 1794859178050, 20000000, 20000000, 20000000, 20000000, 20000000, 20000000, 0, 0, 0, 0, 0, 0, '\x87a199aaf7f17c488df324b83481f7587eb09cd3b27bb6664c985abdbd3d6582');
INSERT INTO public.accounts VALUES (518, '\xc2fa9cf12cdf1850b43aef705fa7499b', 'haversine/km', '', 1794859178050, 20000000, 20000000, 20000000, 20000000, 20000000, 20000000, 0, 0, 0, 0, 0, 0, '\x72814d9d642d0805c5597d25459d75c06ca7e7a45310908de878406aae28f027');


--
-- Data for Name: blocks; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.blocks VALUES (0, 0, 0, 1, 1794859177710, '\xcb1437fa9067cca55ec225b7176393a12a7838ea0157fa4118d803275e7c3a3e');
INSERT INTO public.blocks VALUES (6, 0, 0, 1, 1794859177843, '\x69f00afd6068cfb2b0b0a04c7c36b7c04891bae75b26e339192292d8671804da');
INSERT INTO public.blocks VALUES (6, 1, 1, 1, 1794859177863, '\x0156355ebb56a7dedb8f6b6ec218e03502a7f32a1912fdbb8f6e5c90ea77ae5f');
INSERT INTO public.blocks VALUES (6, 2, 2, 1, 1794859177871, '\x59602ad98c4b5b01eff62e339a9874e81c61e12a969d2d84dbe1199df5502604');
INSERT INTO public.blocks VALUES (6, 3, 3, 1, 1794859177878, '\xdc0f59eca16a1be993d46207b40a806b3a2daed0a708d59b25e6beb6b0cab43f');
INSERT INTO public.blocks VALUES (6, 4, 4, 1, 1794859177887, '\xa2a992f46a155cf8d312daa73f8c13671bbae4570053bc8cac922474b345880b');
INSERT INTO public.blocks VALUES (6, 5, 5, 1, 1794859177898, '\x42bb2f21ab8dd04e4b969994fb3e40e443eeffa04e46c836f22542b2b05e0295');
INSERT INTO public.blocks VALUES (6, 6, 6, 1, 1794859178050, '\x83d1d2c0f5676ddc5a9b6b52dfc03d9c2a8fbb612e28449910980d8aeea51255');


--
-- Data for Name: books; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.books VALUES (1, 2, '722725d702ed7cf7d483ac372b3a0b46', '40/km per day, 200/km ever, 100 ever', 1794859177710, '\xde152889b4b49d0472dc562a116b217e2f6995aca5bc43df53d7e13a4a320e02', NULL);


--
-- Data for Name: entries; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.entries VALUES (0, 0, 'policy', NULL, 1794859177710, 0, 0, '', NULL, '40/km per day, 200/km ever, 100 ever', NULL, NULL, NULL, '\xf7db438e6774042e597365f9e9519de1', '\x61fbb805bb2d2def0561c63baf99c3a913df36460f2069bbaa4bbf9a4204b32f');
INSERT INTO public.entries VALUES (6, 0, 'release', 6, 1794859177843, 10000000, 0, '', '\x4ab5b3ff99f9d4b1026c4f24f2f06df7', '', NULL, '\x7265706f7274', '\x1b98d9eef0e9caa00f12a3788d0910d21313591c1c9ef68c60eef8d72a4b7b78', '\xf82a638369526a87d7bf20cee644d703', '\x2372a3627c32535f99848e677558cbae75ebfef66aae9fd5acca5eb4a365c345');
INSERT INTO public.entries VALUES (6, 1, 'release', 6, 1794859177863, 10000000, 0, '', '\x22c52d6e8250d4b2fa271013a874987c', '', NULL, '\x7265706f7274', '\x0cb82e671d73d79283f726793cb9d645b24ad77301156106760707517a170da4', '\x7cf890ae5d4f3a148ddea808faaa4e59', '\x4df868116597cec5f26491ca475cd4a3456975c240cef6306eb80ff1e6268ea8');
INSERT INTO public.entries VALUES (6, 2, 'release', 6, 1794859177871, 10000000, 0, '', '\xcc940173ea69b2ca8074b9e625fc3c69', '', NULL, '\x7265706f7274', '\xb63946f04475c6f18454fb6e242d69f7308d02cd0c9413b587db803768195b63', '\xab5e84ac16a2d1a6bb4b6c5462e246ff', '\x00437bbd09615d4ba1104060c323a76c2f3170770c9f49211881c5b5c464bf34');
INSERT INTO public.entries VALUES (6, 3, 'release', 70, 1794859177878, 2000000, 0, '', '\x2bd8f809594547a97cdb6069ca252746', '', NULL, '\x7265706f7274', '\x532c4a055929d2b3be089d095cb3309c01d02b596045dfee713afef2fc6a4146', '\x1497c85bbf7722db2ee24de959cd59e4', '\x8ded9d50513bd1979c146a6af060bd66c3cd21879269346f328b49db5f2f87be');
INSERT INTO public.entries VALUES (6, 4, 'release', 134, 1794859177887, 10000000, 0, '', '\x0c1350aede17ea71da6c05f0f49dd37f', '', NULL, '\x7265706f7274', '\x05aaf8563347bd3570aa947be603daf9f1fa5ba834f3281fe778eea80c2d6091', '\x9cd45b3b2e88829c7b0fd25f723f1705', '\x8c2af5df6b0d1024beb14dca0c9b2054377c8f0d1d69befa23e48f0727b9d3b2');
INSERT INTO public.entries VALUES (6, 5, 'batch', NULL, 1794859177898, 5000000, 0, '', '\xf82a2fccf4500d05df0802bc80a6ddf5', '', '\x0000000000000006000000000000000100000000004c4b40000000000000000000000000000000c6000000000000000200000000004c4b400000000000000000', '\x7265706f727473', '\x66551f6a413086c037a63ccc0e4786713f9d53b9006f19498edc13de87945581', '\x80da15ded2ad2ba6373e040bfe37cdfd', '\x0f7c14e4c34156834191aba0cdb3a46f301b7bff4e6fb5e23f64ed9776f68208');
INSERT INTO public.entries VALUES (6, 6, 'batch', NULL, 1794859178050, 10000000, 0, '', '\x068dc0d1a14e5f79f65d8b7a357d368c', '', '\x00000000000001060000000000000002000000000098968000000000000000000000000000000146000000000000000200000000009896800000000000000000000000000000018600000000000000020000000000989680000000000000000000000000000001c60000000000000002000000000098968000000000000000000000000000000206000000000000000200000000009896800000000000000000', '\x', '\x13fffdc53840f3d467123e9dc936eb1a9740d2adda4a4ccf613cbb5afb0bd340', '\xf25c3ed1f578a45604c19a5d657eaedd', '\x484f679dd6b1233c71a59dca4187d44a8026abf8285c9bd9bc38dd86bfe443c4');


--
-- Data for Name: lanes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lanes VALUES (1, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (2, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (3, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (4, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (5, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (7, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (8, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (9, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (10, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (11, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (12, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (13, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (14, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (15, 0, 0, 0, 1794859177710, '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.lanes VALUES (0, 1, 1, 0, 1794859177710, '\xcb1437fa9067cca55ec225b7176393a12a7838ea0157fa4118d803275e7c3a3e');
INSERT INTO public.lanes VALUES (6, 7, 7, 9, 1794859178050, '\x83d1d2c0f5676ddc5a9b6b52dfc03d9c2a8fbb612e28449910980d8aeea51255');


--
-- Data for Name: tombstones; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: books_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.books_id_seq', 1, false);


--
-- Name: accounts accounts_person_metric_purpose_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_person_metric_purpose_key UNIQUE (person, metric, purpose);


--
-- Name: accounts accounts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);


--
-- Name: blocks blocks_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (lane, number);


--
-- Name: books books_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.books
    ADD CONSTRAINT books_pkey PRIMARY KEY (id);


--
-- Name: entries entries_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (lane, number);


--
-- Name: entries entries_request_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_request_key UNIQUE (request);


--
-- Name: lanes lanes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lanes
    ADD CONSTRAINT lanes_pkey PRIMARY KEY (lane);


--
-- Name: tombstones tombstones_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tombstones
    ADD CONSTRAINT tombstones_pkey PRIMARY KEY (person);


--
-- Name: ix_entries_account; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_entries_account ON public.entries USING btree (account);


--
-- PostgreSQL database dump complete
--

\unrestrict VpJpaRcS4OB5UdOjSwkYGhsH9HRYoqXUmqa7C4trtQOWip2WNaBo8OlhyaNQE7t

